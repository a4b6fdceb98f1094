"""A soak of faults: a deployment is hit again and again, and no message is lost."""
