"""An S3 server keeps the contract of providers, and a log's old records."""

from __future__ import annotations

import asyncio
import itertools

import pytest

from ropeway.storage.api import LogUnavailableError
from ropeway.storage.tiered.api import ProviderError
from ropeway.storage.tiered.objects import open_provider
from tests.contracts.log import TOPIC, read_all
from tests.contracts.provider import NAME, ProviderContract
from tests.storage.tiered import s3
from tests.storage.tiered.tiers import fill, forget_local, running, until

pytestmark = pytest.mark.server

prefixes = itertools.count()


@pytest.fixture(scope="module")
def address(tmp_path_factory):
    with s3.server(tmp_path_factory.mktemp("s3")) as here:
        yield here


@pytest.fixture(autouse=True)
def credentials(monkeypatch):
    for name, value in s3.CREDENTIALS.items():
        monkeypatch.setenv(name, value)


class TestObjectProvider(ProviderContract):
    @pytest.fixture
    def open_provider(self, address):
        prefix = f"contract-{next(prefixes)}"
        return lambda: open_provider(s3.url(address, prefix))


def test_a_log_reads_from_s3_what_it_has_dropped(tmp_path, address):
    async def main():
        provider = open_provider(s3.url(address, f"log-{next(prefixes)}"))
        async with running(tmp_path, provider) as log:
            partition = log.partition(TOPIC, 0)
            texts = [f"{at}" for at in range(100)]
            for low in range(0, 100, 50):
                await fill(partition, texts[low : low + 50])
                await log.dispatch()
            await log.merge()
            await forget_local(log, partition)
            assert (await read_all(partition))[:100] == texts
            (found,) = await log.query(TOPIC, "key-77", 0, 1 << 40, 5)
            assert found.offset == 77
            await log.delete(TOPIC)
            await log.tier_index.settle()
            assert [one async for one in provider.names("")] == []

    asyncio.run(main())


def test_errors_name_bucket_object_and_remedy_but_no_secret(address):
    async def main():
        url = s3.url(address, "x").replace(s3.BUCKET, "no-such-bucket")
        provider = open_provider(url)
        with pytest.raises(ProviderError) as refused:
            await provider.put(NAME, [b"x"])
        text = str(refused.value)
        assert "s3://no-such-bucket/x" in text
        assert NAME in text
        assert "credentials in the environment" in text
        assert s3.CREDENTIALS["AWS_SECRET_ACCESS_KEY"] not in text
        assert "\n" not in text

    asyncio.run(main())


def test_while_credentials_are_refused_nothing_is_lost_and_then_it_goes_on(
    tmp_path, address
):
    async def main():
        async with s3.guarded(address) as (guarded, permitted):
            provider = open_provider(s3.url(guarded, f"guarded-{next(prefixes)}"))
            async with running(tmp_path, provider) as log:
                partition = log.partition(TOPIC, 0)
                texts = [f"{at}" for at in range(20)]
                await fill(partition, texts[:10])
                await log.dispatch()
                permitted[0] = False
                log.start()
                await fill(partition, texts[10:])
                await until(lambda: log.dispatcher.failure is not None)
                assert "credentials in the environment" in log.dispatcher.failure
                await forget_local(log, partition)
                assert partition.inner.first == 0
                permitted[0] = True
                await until(lambda: log.dispatcher.failure is None)
                await until(
                    lambda: log.dispatcher.safe_position == log.inner.written_to
                )
                permitted[0] = False
                await forget_local(log, partition)
                assert partition.inner.first > 0
                with pytest.raises(LogUnavailableError, match="credentials"):
                    await partition.read(0, 32, 1 << 20)
                permitted[0] = True
                assert (await read_all(partition))[:20] == texts

    asyncio.run(main())
