//! Runs RocketMQ 5's Rust client on command: JSON lines in, JSON lines out. See ../../README.md.

use std::collections::{HashMap, HashSet};
use std::error::Error;
use std::io::{self, BufRead};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use rocketmq::conf::{ClientOption, ProducerOption, SimpleConsumerOption};
use rocketmq::model::common::{FilterExpression, FilterType};
use rocketmq::model::message::{MessageBuilder, MessageView};
use rocketmq::model::transaction::{Transaction, TransactionResolution};
use rocketmq::{Producer, SimpleConsumer};
use serde_json::{json, Map, Value};

type Done = Result<(), Box<dyn Error + Send + Sync>>;
/// The ids of those that go on until a stop command names them.
type Running = Arc<Mutex<HashSet<i64>>>;

const BATCH: i32 = 16;
const WAIT: Duration = Duration::from_secs(5);
/// A loaded machine may need longer than the 3 s of the default.
const TIMEOUT: Duration = Duration::from_secs(30);
const PAUSE: Duration = Duration::from_millis(100);

fn main() {
    let deadline = std::env::args().nth(1).expect("the seconds to live").parse().unwrap();
    thread::spawn(move || {
        thread::sleep(Duration::from_secs(deadline));
        std::process::exit(3);
    });
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let running: Running = Arc::default();
    for line in io::stdin().lock().lines() {
        let command: Value = serde_json::from_str(&line.unwrap()).unwrap();
        runtime.spawn(run(command, running.clone()));
    }
    std::process::exit(0);
}

async fn run(command: Value, running: Running) {
    let done = match text(&command, "do") {
        "produce" => produce(&command).await,
        "transact" => transact(&command, &running).await,
        "poll" => poll(&command, &running).await,
        "stop" => {
            running.lock().unwrap().remove(&number(&command, "target", 0));
            Ok(())
        }
        other => Err(format!("{other} is not supported").into()),
    };
    match done {
        Ok(()) => emit(&command, "done", json!({})),
        Err(error) => emit(&command, "error", failed(&*error)),
    }
}

fn text<'a>(of: &'a Value, name: &str) -> &'a str {
    of[name].as_str().unwrap_or("")
}

fn number(of: &Value, name: &str, otherwise: i64) -> i64 {
    of[name].as_i64().unwrap_or(otherwise)
}

fn now_ms() -> i64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_millis() as i64
}

fn emit(command: &Value, event: &str, more: Value) {
    let mut line = Map::new();
    line.insert("id".into(), command["id"].clone());
    line.insert("event".into(), event.into());
    line.extend(more.as_object().unwrap().clone());
    println!("{}", Value::Object(line));
}

fn failed(error: &(dyn Error + Send + Sync)) -> Value {
    json!({"type": "ClientError", "code": -1, "error": error.to_string()})
}

fn option(command: &Value) -> ClientOption {
    let mut option = ClientOption::default();
    // It takes one endpoint, and learns the others from routes.
    let first = text(command, "namesrv").split(';').next().unwrap();
    option.set_access_url(first);
    option.set_enable_tls(false);
    option.set_timeout(TIMEOUT);
    option.set_long_polling_timeout(WAIT);
    option
}

fn built(topic: &str, wanted: &Value, builder: MessageBuilder) -> MessageBuilder {
    let mut builder = builder.set_topic(topic).set_body(text(wanted, "body").into());
    if !text(wanted, "tags").is_empty() {
        builder = builder.set_tag(text(wanted, "tags"));
    }
    if !text(wanted, "keys").is_empty() {
        builder = builder.set_keys(text(wanted, "keys").split(' ').collect());
    }
    let properties: HashMap<String, String> =
        serde_json::from_value(wanted["properties"].clone()).unwrap_or_default();
    builder = builder.set_properties(properties);
    if !text(wanted, "group").is_empty() {
        builder = builder.set_message_group(text(wanted, "group"));
    }
    match number(wanted, "delay_ms", 0) {
        0 => builder,
        delay_ms => builder.set_delivery_timestamp((now_ms() + delay_ms) / 1000),
    }
}

async fn produce(command: &Value) -> Done {
    let mut wanted = ProducerOption::default();
    let topic = text(command, "topic");
    wanted.set_topics(vec![topic]);
    let mut producer = Producer::new(wanted, option(command))?;
    producer.start().await?;
    for one in command["messages"].as_array().unwrap() {
        let message = built(topic, one, MessageBuilder::builder()).build()?;
        let receipt = producer.send(message).await?;
        let sent = json!({"body": one["body"], "msg_id": receipt.message_id()});
        emit(command, "sent", sent);
    }
    producer.shutdown().await?;
    Ok(())
}

/// A producer of transactions, which answers what it is asked until it is stopped.
async fn transact(command: &Value, running: &Running) -> Done {
    let topic = text(command, "topic");
    let asked = command.clone();
    let check = move |_: String, message: MessageView| {
        emit(&asked, "checked", described(&message));
        match message.properties().get("check").map(String::as_str) {
            Some("commit") => TransactionResolution::COMMIT,
            Some("rollback") => TransactionResolution::ROLLBACK,
            _ => TransactionResolution::UNKNOWN,
        }
    };
    let mut wanted = ProducerOption::default();
    wanted.set_topics(vec![topic]);
    let mut producer =
        Producer::new_transaction_producer(wanted, option(command), Box::new(check))?;
    producer.start().await?;
    for one in command["messages"].as_array().unwrap() {
        let message = built(topic, one, MessageBuilder::builder().enable_transaction());
        let transaction = producer.send_transaction_message(message.build()?).await?;
        let sent = json!({"body": one["body"], "msg_id": transaction.message_id()});
        emit(command, "sent", sent);
        match text(&one["properties"], "local") {
            "commit" => transaction.commit().await?,
            "rollback" => transaction.rollback().await?,
            _ => (),
        }
    }
    let (running, id) = (running.clone(), number(command, "id", 0));
    running.lock().unwrap().insert(id);
    tokio::spawn(async move {
        while running.lock().unwrap().contains(&id) {
            tokio::time::sleep(PAUSE).await;
        }
        let _ = producer.shutdown().await;
    });
    Ok(())
}

/// The library cannot change how long it keeps a message: what is refused comes back by itself.
async fn poll(command: &Value, running: &Running) -> Done {
    let mut wanted = SimpleConsumerOption::default();
    wanted.set_consumer_group(text(command, "group"));
    wanted.set_topics(vec![text(command, "topic")]);
    let mut consumer = SimpleConsumer::new(wanted, option(command))?;
    consumer.start().await?;
    running.lock().unwrap().insert(number(command, "id", 0));
    tokio::spawn(receive(command.clone(), consumer, running.clone()));
    Ok(())
}

async fn receive(command: Value, consumer: SimpleConsumer, running: Running) {
    let filter = match text(&command, "sql") {
        "" => FilterExpression::new(FilterType::Tag, command["tags"].as_str().unwrap_or("*")),
        sql => FilterExpression::new(FilterType::Sql, sql),
    };
    let invisible = Duration::from_millis(number(&command, "invisible_ms", 60_000) as u64);
    let id = number(&command, "id", 0);
    while running.lock().unwrap().contains(&id) {
        let topic = text(&command, "topic");
        // It fails where nothing came, too: what comes next shows.
        let Ok(messages) = consumer.receive_with(topic, &filter, BATCH, invisible).await else {
            tokio::time::sleep(PAUSE).await;
            continue;
        };
        for message in messages {
            let accepted = i64::from(message.delivery_attempt()) > number(&command, "fail", 0);
            let mut received = described(&message);
            received["accepted"] = accepted.into();
            emit(&command, "received", received);
            if accepted {
                if let Err(error) = consumer.ack(&message).await {
                    emit(&command, "missed", failed(&error));
                }
            }
        }
    }
    let _ = consumer.shutdown().await;
}

fn described(message: &MessageView) -> Value {
    json!({
        "body": String::from_utf8_lossy(message.body()), "topic": message.topic(),
        "msg_id": message.message_id(), "tags": message.tag(),
        "keys": message.keys().join(" "), "properties": message.properties(),
        "group": message.message_group(), "attempt": message.delivery_attempt(),
        "at_ms": now_ms(),
    })
}
