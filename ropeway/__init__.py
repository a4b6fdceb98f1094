"""What users import: clients of RocketMQ, and a gateway to test against."""
