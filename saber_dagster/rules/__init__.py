"""The rules that hold between and inside tables, beyond their contracts: frames in, violations out.

A contract knows one column at a time, and the key. A rule knows what the table means. Each function
takes the table, and what it was made from, and computes what must hold in another way than the stage.
"""
