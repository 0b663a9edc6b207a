"""The world around the tables, in the small language: read as text (see ../program.py), and never imported to be run.

Theory of operation. Each file restates a part of specs/world or specs/properties, and says which. Functions are in one
name space; `written` stands for what is made from the tables.
"""
