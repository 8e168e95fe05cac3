"""The public data sets of repositories to repair, and our own tasks in their form."""
