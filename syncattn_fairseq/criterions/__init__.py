"""The criterion, which importing its module registers with fairseq, and its terms."""
