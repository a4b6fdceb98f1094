"""A node's site, where its configuration asks for one."""

import socket

import pytest

from ropeway.gateway.app import App
from ropeway.gateway.config import HttpConfig
from ropeway.gateway.errors import ServerError
from ropeway.gateway.http.setup import site
from tests.remoting import config, looped


@looped
async def test_without_the_setting_nothing_is_opened(tmp_path):
    async with App(config(tmp_path)) as app, site(app) as address:
        assert address is None


@looped
async def test_a_port_that_is_taken_is_told(tmp_path):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        async with App(config(tmp_path, http=HttpConfig(port=port))) as app:
            with pytest.raises(ServerError, match=f"listen on 127.0.0.1:{port}"):
                async with site(app):
                    pass
