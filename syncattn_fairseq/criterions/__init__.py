"""The training criterion and its loss terms; importing the criterion's module registers both."""
