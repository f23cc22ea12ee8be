"""Other projects' interfaces over rdna: each module's install() makes their own import lines work."""
