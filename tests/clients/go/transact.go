// The transact command: a producer of transactions that runs until it is stopped.
package main

import (
	"context"
	"strconv"
	"time"

	rocketmq "github.com/apache/rocketmq-client-go/v2"
	"github.com/apache/rocketmq-client-go/v2/primitive"
	"github.com/apache/rocketmq-client-go/v2/producer"
)

var states = map[string]primitive.LocalTransactionState{
	"commit":   primitive.CommitMessageState,
	"rollback": primitive.RollbackMessageState,
}

var stateNames = map[primitive.LocalTransactionState]string{
	primitive.CommitMessageState:   "COMMIT_MESSAGE",
	primitive.RollbackMessageState: "ROLLBACK_MESSAGE",
	primitive.UnknowState:          "UNKNOW",
}

// byProperties does with each message what its properties say.
type byProperties struct{ command *command }

func stateOf(name string) primitive.LocalTransactionState {
	if state, known := states[name]; known {
		return state
	}
	return primitive.UnknowState
}

func (b byProperties) ExecuteLocalTransaction(
	m *primitive.Message,
) primitive.LocalTransactionState {
	b.command.emit("executing", fields{"body": string(m.Body)})
	if hold, err := strconv.Atoi(m.GetProperty("hold_ms")); err == nil {
		time.Sleep(time.Duration(hold) * time.Millisecond)
	}
	return stateOf(m.GetProperty("local"))
}

func (b byProperties) CheckLocalTransaction(
	m *primitive.MessageExt,
) primitive.LocalTransactionState {
	b.command.emit("checked", describeMessage(m))
	return stateOf(m.GetProperty("check"))
}

func transact(c *command) error {
	opened, err := rocketmq.NewTransactionProducer(
		byProperties{c},
		producer.WithNsResolver(c.resolver()),
		producer.WithGroupName(c.Group),
		producer.WithInstanceName(c.instance()),
		producer.WithSendMsgTimeout(sendTimeout))
	if err != nil {
		return err
	}
	if err := opened.Start(); err != nil {
		return err
	}
	running.Store(c.ID, opened.Shutdown)
	for _, w := range c.Messages {
		result, err := opened.SendMessageInTransaction(context.Background(), build(c, w))
		if err != nil {
			return err
		}
		c.emit("sent", sentFields(result.SendResult, fields{
			"body":           w.Body,
			"transaction_id": result.TransactionID,
			"state":          stateNames[result.State],
		}))
	}
	return nil
}
