"""A small actor whose import costs far more than most of its work."""

from demo_actor.worker import Worker

__all__ = ["Worker"]
