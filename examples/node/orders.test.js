'use strict';

const assert = require('node:assert');
const { after, before, test } = require('node:test');
const { Producer, SimpleConsumer } = require('rocketmq-client-nodejs');
const { startGateway } = require('./gateway');

let gateway;
before(async () => { gateway = await startGateway('--topic=orders'); });
after(() => gateway?.stop());

test('an order that is sent is received', async () => {
  const options = { endpoints: gateway.address, namespace: '', requestTimeout: 60_000 };
  const producer = new Producer(options);
  await producer.startup();
  await producer.send({ topic: 'orders', body: Buffer.from('one coffee') });
  await producer.shutdown();

  const consumer = new SimpleConsumer({
    ...options, consumerGroup: 'kitchen', subscriptions: new Map([['orders', '*']]),
    awaitDuration: 5_000,
  });
  await consumer.startup();
  let received = [];
  while (received.length === 0) received = await consumer.receive(1, 30_000);
  assert.strictEqual(received[0].body.toString(), 'one coffee');
  await consumer.ack(received[0]);
  await consumer.shutdown();
});

test('a command that is not there is named', async () => {
  process.env.ROPEWAY_COMMAND = '/nowhere/ropeway';
  await assert.rejects(startGateway(), /nowhere\/ropeway ENOENT; install Ropeway/);
});
