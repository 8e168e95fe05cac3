"""What the searcher sends into the sandbox: makes a problem happen, finds the code it runs through, and tries repairs.

    python -m trial reproduce|locate|attempt|keep < request

Reads a request and prints an answer, both JSON. It works in a copy of the tree, so that the repository changes only
when a repair is kept. The folder travels alone, so its modules import one another relatively, and else only the
standard library and pytest.
"""
