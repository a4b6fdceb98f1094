"""apache.rocketmq.v2: its messages and enums, made at import from their descriptor.

The descriptor is compiled from the .proto files beside it by `scripts/protocol`, and
kept in a pool of its own. So any release of protobuf will do, whatever made the
descriptor; and RocketMQ's own client for Python, which brings the same names in the
common pool, can live in the same process. The pool has a Duration and a Timestamp of
its own, too.
"""

from importlib import resources

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory
from google.protobuf.internal import enum_type_wrapper

message_class = message_factory.GetMessageClass

_pool = descriptor_pool.DescriptorPool()
_set = descriptor_pb2.FileDescriptorSet.FromString(
    resources.files(__name__).joinpath("v2.binpb").read_bytes()
)
for _file in _set.file:
    _pool.Add(_file)
    _made = _pool.FindFileByName(_file.name)
    for _name, _message in _made.message_types_by_name.items():
        globals()[_name] = message_class(_message)
    for _name, _enum in _made.enum_types_by_name.items():
        _wrapper = enum_type_wrapper.EnumTypeWrapper(_enum)
        # Its own look-up takes ten times as long as an attribute's.
        vars(_wrapper).update(_wrapper.items())
        globals()[_name] = _wrapper

SERVICE = _pool.FindServiceByName("apache.rocketmq.v2.MessagingService")
"""The service's methods, each with its messages."""
