"""HTTP: a path and a JSON body to a call, an outcome to a status and a JSON body."""
