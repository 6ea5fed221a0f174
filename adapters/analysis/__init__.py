"""What policies say before anybody asks: why a call was refused, who can do what, what a change changes."""
