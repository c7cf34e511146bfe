"""The training criterion, registered with fairseq when its module is imported, and its terms."""
