"""Questions about a program that passes and code generators ask; nothing here changes one."""
