"""From public archives to a scored system, in stages."""
