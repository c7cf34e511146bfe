"""The record of our study: its pages and results, and the programs to make both; see README.md.

They run in the checkout's root, as ``python -m study.NAME``.
"""
