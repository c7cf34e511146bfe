"""The training criterion, registered with fairseq on import, and its syntactic losses."""
