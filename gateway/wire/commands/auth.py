"""Headers of users and access rules, of RocketMQ 5 (ACL 2.0) and 4 (ACL 1.0)."""

from __future__ import annotations

from ropeway.gateway.wire.codes import RequestCode
from ropeway.gateway.wire.header import Header, request


@request(RequestCode.AUTH_CREATE_USER)
class CreateUser(Header, frozen=True):
    """Create a user: UserInfo, the body.

    Source: CreateUserRequestHeader.java, RocketMQ 5.3.4.
    """

    username: str | None = None


@request(RequestCode.AUTH_UPDATE_USER)
class UpdateUser(Header, frozen=True):
    """Change a user: UserInfo, the body.

    Source: UpdateUserRequestHeader.java, RocketMQ 5.3.4.
    """

    username: str | None = None


@request(RequestCode.AUTH_DELETE_USER)
class DeleteUser(Header, frozen=True):
    """Delete a user.

    Source: DeleteUserRequestHeader.java, RocketMQ 5.3.4.
    """

    username: str | None = None


@request(RequestCode.AUTH_GET_USER)
class GetUser(Header, frozen=True):
    """Ask for a user; answered by UserInfo, with the password.

    Source: GetUserRequestHeader.java, RocketMQ 5.3.4.
    """

    username: str | None = None


@request(RequestCode.AUTH_LIST_USER)
class ListUsers(Header, frozen=True):
    """Ask for all users; answered by a list of UserInfo, with passwords.

    Source: ListUsersRequestHeader.java, RocketMQ 5.3.4.
    """

    filter: str | None = None


@request(RequestCode.AUTH_CREATE_ACL)
class CreateAcl(Header, frozen=True):
    """Create a subject's rules: AclInfo, the body.

    Source: CreateAclRequestHeader.java, RocketMQ 5.3.4.
    """

    subject: str | None = None


@request(RequestCode.AUTH_UPDATE_ACL)
class UpdateAcl(Header, frozen=True):
    """Change a subject's rules: AclInfo, the body.

    Source: UpdateAclRequestHeader.java, RocketMQ 5.3.4.
    """

    subject: str | None = None


@request(RequestCode.AUTH_DELETE_ACL)
class DeleteAcl(Header, frozen=True):
    """Delete a subject's rules, or those for one resource.

    Source: DeleteAclRequestHeader.java, RocketMQ 5.3.4.
    """

    subject: str | None = None
    policy_type: str | None = None
    resource: str | None = None


@request(RequestCode.AUTH_GET_ACL)
class GetAcl(Header, frozen=True):
    """Ask for a subject's rules; answered by AclInfo.

    Source: GetAclRequestHeader.java, RocketMQ 5.3.4.
    """

    subject: str | None = None


@request(RequestCode.AUTH_LIST_ACL)
class ListAcls(Header, frozen=True):
    """Ask for all rules; answered by a list of AclInfo.

    Source: ListAclsRequestHeader.java, RocketMQ 5.3.4.
    """

    subject_filter: str | None = None
    resource_filter: str | None = None


@request(RequestCode.UPDATE_AND_CREATE_ACL_CONFIG)
class CreateAccessConfig(Header, frozen=True):
    """Create or change an account of ACL 1.0.

    Source: CreateAccessConfigRequestHeader.java, RocketMQ 4.9.8.
    """

    access_key: str
    secret_key: str | None = None
    white_remote_address: str | None = None
    admin: bool = False
    default_topic_perm: str | None = None
    default_group_perm: str | None = None
    topic_perms: str | None = None
    """`topic=PUB|SUB`, joined by commas."""
    group_perms: str | None = None


@request(RequestCode.DELETE_ACL_CONFIG)
class DeleteAccessConfig(Header, frozen=True):
    """Delete an account of ACL 1.0.

    Source: DeleteAccessConfigRequestHeader.java, RocketMQ 4.9.8.
    """

    access_key: str


@request(RequestCode.UPDATE_GLOBAL_WHITE_ADDRS_CONFIG)
class UpdateGlobalWhiteAddrs(Header, frozen=True):
    """Set the addresses that ACL 1.0 lets in unasked.

    Source: UpdateGlobalWhiteAddrsConfigRequestHeader.java, RocketMQ 4.9.8.
    """

    global_white_addrs: str
    acl_file_full_path: str | None = None


@request(RequestCode.GET_BROKER_CLUSTER_ACL_CONFIG)
class GetAccessConfig(Header, frozen=True):
    """Ask for all of ACL 1.0, with secrets.

    Source: AdminBrokerProcessor.getBrokerClusterAclConfig, RocketMQ 4.9.7.
    """
