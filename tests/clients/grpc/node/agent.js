// Runs RocketMQ 5's gRPC clients on command: JSON lines in and out. See ../README.md.
'use strict';

const readline = require('node:readline');
const {
  ConsumeResult, FilterExpression, LitePushConsumerImpl, OffsetOption, Producer,
  PushConsumer, SimpleConsumer,
} = require('rocketmq-client-nodejs');

const BATCH = 16;
const WAIT_MS = 5000;
const SQL = 2;
// TransactionResolution of the protocol.
const RESOLUTIONS = { commit: 1, rollback: 2 };
const silent = { debug() {}, info() {}, warn() {}, error() {}, close() {} };

// Clients that run until a stop command names them.
const running = new Map();

function emit(command, event, fields) {
  process.stdout.write(`${JSON.stringify({ id: command.id, event, ...fields })}\n`);
}

function describeError(error) {
  return { type: error.name, code: -1, error: String(error.message) };
}

function describe(message) {
  return {
    body: message.body.toString(),
    topic: message.topic,
    msg_id: message.messageId,
    tags: message.tag,
    keys: message.keys.join(' '),
    properties: Object.fromEntries(message.properties),
    group: message.messageGroup,
    priority: message.priority,
    lite_topic: message.liteTopic,
    attempt: message.deliveryAttempt,
    at_ms: Date.now(),
  };
}

function build(topic, wanted) {
  return {
    topic,
    body: Buffer.from(wanted.body),
    tag: wanted.tags,
    keys: wanted.keys?.split(' '),
    messageGroup: wanted.group,
    delay: wanted.delay_ms,
    priority: wanted.priority,
    liteTopic: wanted.lite_topic,
    properties: new Map(Object.entries(wanted.properties ?? {})),
  };
}

// Of several endpoints the client makes one address, which is none.
function options(command) {
  return {
    endpoints: command.namesrv.split(';')[0],
    namespace: '',
    logger: silent,
    // By default 3 s, as long as a loaded machine may stand still.
    requestTimeout: 30_000,
  };
}

async function openProducer(command, more) {
  const producer = new Producer({ ...options(command), topic: command.topic, ...more });
  await producer.startup();
  return producer;
}

function sent(command, wanted, receipt) {
  emit(command, 'sent', {
    body: wanted.body, msg_id: receipt.messageId, recall_handle: receipt.recallHandle,
  });
}

async function produce(command) {
  const producer = await openProducer(command, {});
  try {
    for (const one of command.messages) {
      sent(command, one, await producer.send(build(command.topic, one)));
    }
  } finally {
    await producer.shutdown();
  }
}

// A producer of transactions, which answers what it is asked until it is stopped.
async function transact(command) {
  const checker = {
    async check(message) {
      emit(command, 'checked', describe(message));
      return RESOLUTIONS[message.properties.get('check')] ?? 0;
    },
  };
  const producer = await openProducer(command, { checker });
  running.set(command.id, producer);
  for (const one of command.messages) {
    const transaction = producer.beginTransaction();
    sent(command, one, await producer.send(build(command.topic, one), transaction));
    const end = one.properties?.local;
    if (end === 'commit') {
      await transaction.commit();
    } else if (end === 'rollback') {
      await transaction.rollback();
    }
  }
}

async function recall(command) {
  const producer = await openProducer(command, {});
  try {
    const receipt = await producer.recallMessage(command.topic, command.handle);
    emit(command, 'recalled', { msg_id: receipt.messageId });
  } finally {
    await producer.shutdown();
  }
}

function subscriptions(command) {
  const filter = command.sql
    ? new FilterExpression(command.sql, SQL)
    : new FilterExpression(command.tags ?? '*');
  return new Map([[command.topic, filter]]);
}

function accept(command, message) {
  const accepted = message.deliveryAttempt > (command.fail ?? 0);
  emit(command, 'received', { ...describe(message), accepted });
  return accepted;
}

async function push(command) {
  const consumer = new PushConsumer({
    ...options(command),
    consumerGroup: command.group,
    subscriptions: subscriptions(command),
    messageListener: {
      consume: (message) => (
        accept(command, message) ? ConsumeResult.SUCCESS : ConsumeResult.FAILURE),
    },
  });
  await consumer.startup();
  running.set(command.id, consumer);
}

async function consumeLite(command) {
  const consumer = new LitePushConsumerImpl({
    ...options(command),
    consumerGroup: command.group,
    bindTopic: command.topic,
    messageListener: {
      consume: (message) => (
        accept(command, message) ? ConsumeResult.SUCCESS : ConsumeResult.FAILURE),
    },
  });
  await consumer.startup();
  running.set(command.id, consumer);
}

async function subscribeLite(command) {
  const consumer = running.get(command.target);
  if (command.tail === undefined) {
    await consumer.subscribeLite(command.lite_topic);
  } else {
    await consumer.subscribeLite(command.lite_topic, OffsetOption.ofTailN(command.tail));
  }
  emit(command, 'subscribed', { lite_topics: [...consumer.getLiteTopicSet()] });
}

async function unsubscribeLite(command) {
  const consumer = running.get(command.target);
  await consumer.unsubscribeLite(command.lite_topic);
  emit(command, 'subscribed', { lite_topics: [...consumer.getLiteTopicSet()] });
}

// Acknowledges what it accepts, and keeps the rest for change_ms only.
async function poll(command) {
  const consumer = new SimpleConsumer({
    ...options(command),
    consumerGroup: command.group,
    subscriptions: subscriptions(command),
    awaitDuration: WAIT_MS,
  });
  await consumer.startup();
  running.set(command.id, consumer);
  receive(command, consumer);
}

async function receive(command, consumer) {
  while (running.has(command.id)) {
    try {
      for (const one of await consumer.receive(BATCH, command.invisible_ms ?? 60_000)) {
        if (accept(command, one)) {
          await consumer.ack(one);
        } else {
          await consumer.changeInvisibleDuration(one, command.change_ms ?? 0);
        }
      }
    } catch (error) {
      // It is stopped, or the server is away: what comes next shows.
      emit(command, 'missed', describeError(error));
    }
  }
}

// A consumer ends when its last long poll has: nobody waits for that.
async function stop(command) {
  const client = running.get(command.target);
  running.delete(command.target);
  client.shutdown().catch((error) => emit(command, 'missed', describeError(error)));
}

const ACTIONS = {
  produce,
  transact,
  recall,
  consume: push,
  poll,
  consume_lite: consumeLite,
  subscribe_lite: subscribeLite,
  unsubscribe_lite: unsubscribeLite,
  stop,
};

async function run(command) {
  try {
    await ACTIONS[command.do](command);
    emit(command, 'done', {});
  } catch (error) {
    emit(command, 'error', describeError(error));
  }
}

setTimeout(() => process.exit(3), Number(process.argv[2]) * 1000);
const lines = readline.createInterface({ input: process.stdin });
lines.on('line', (line) => run(JSON.parse(line)));
lines.on('close', () => process.exit(0));
