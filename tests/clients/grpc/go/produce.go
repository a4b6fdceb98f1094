// The produce and transact commands.
package main

import (
	"context"
	"strings"
	"time"

	rmq "github.com/apache/rocketmq-clients/golang/v5"
)

var resolutions = map[string]rmq.TransactionResolution{
	"commit":   rmq.COMMIT,
	"rollback": rmq.ROLLBACK,
}

func build(topic string, w wanted) *rmq.Message {
	m := &rmq.Message{Topic: topic, Body: []byte(w.Body)}
	if w.Tags != "" {
		m.SetTag(w.Tags)
	}
	if w.Keys != "" {
		m.SetKeys(strings.Split(w.Keys, " ")...)
	}
	if w.Group != "" {
		m.SetMessageGroup(w.Group)
	}
	if w.DelayMs != 0 {
		m.SetDelayTimestamp(time.Now().Add(time.Duration(w.DelayMs) * time.Millisecond))
	}
	for name, value := range w.Properties {
		m.AddProperty(name, value)
	}
	return m
}

func produce(c *command) error {
	opened, err := rmq.NewProducer(c.config(), rmq.WithTopics(c.Topic))
	if err != nil {
		return err
	}
	opened.SetRequestTimeout(requestTimeout)
	if err := opened.Start(); err != nil {
		return err
	}
	defer opened.GracefulStop()
	for _, w := range c.Messages {
		receipts, err := opened.Send(context.Background(), build(c.Topic, w))
		if err != nil {
			return err
		}
		c.emit("sent", fields{"body": w.Body, "msg_id": receipts[0].MessageID})
	}
	return nil
}

// transact is a producer of transactions, which answers what it is asked until it is stopped.
func transact(c *command) error {
	check := func(m *rmq.MessageView) rmq.TransactionResolution {
		c.emit("checked", describe(m))
		return resolutions[m.GetProperties()["check"]]
	}
	opened, err := rmq.NewProducer(
		c.config(),
		rmq.WithTopics(c.Topic),
		rmq.WithTransactionChecker(&rmq.TransactionChecker{Check: check}))
	if err != nil {
		return err
	}
	opened.SetRequestTimeout(requestTimeout)
	if err := opened.Start(); err != nil {
		return err
	}
	running.Store(c.ID, opened.GracefulStop)
	for _, w := range c.Messages {
		transaction := opened.BeginTransaction()
		receipts, err := opened.SendWithTransaction(
			context.Background(), build(c.Topic, w), transaction)
		if err != nil {
			return err
		}
		c.emit("sent", fields{"body": w.Body, "msg_id": receipts[0].MessageID})
		switch w.Properties["local"] {
		case "commit":
			err = transaction.Commit()
		case "rollback":
			err = transaction.RollBack()
		}
		if err != nil {
			return err
		}
	}
	return nil
}
