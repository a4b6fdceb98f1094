"""RocketMQ's remoting protocol as data: no I/O, and nothing of ours is imported.

Primitives: a *frame* (`frame`) carries one command; a *header* (`header`) is a
command's typed fields, declared once in `commands`; a *stored message* (`message`) is
what logs keep and consumers read; a *message id* (`message_id`) is where it lives.
"""
