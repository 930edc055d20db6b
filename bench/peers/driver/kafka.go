package main

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
)

// kafkaBroker is a Kafka topic with a partition a receiver, or a partition a tenant, and one consumer group: acks of all
// replicas, of which there is one. Offsets are committed one request after the other, each for all that was settled
// meanwhile, so that a receiver does not stand still for a commit; the offsets of everything settled are committed in the end.
type kafkaBroker struct {
	plan   Plan
	client *kgo.Client
}

const (
	kafkaTopic = "peers"
	kafkaGroup = "peers"
)

func newKafka(plan Plan) (broker, error) {
	partitioner := kgo.StickyKeyPartitioner(nil)
	if plan.QueuePerTenant {
		partitioner = kgo.ManualPartitioner()
	}
	client, err := kgo.NewClient(
		kgo.SeedBrokers(plan.Addr), kgo.DefaultProduceTopic(kafkaTopic), kgo.RecordPartitioner(partitioner),
		kgo.ProducerLinger(0), kgo.ProducerBatchCompression(kgo.NoCompression()), kgo.RequiredAcks(kgo.AllISRAcks()),
		kgo.ProducerBatchMaxBytes(8<<20))
	if err != nil {
		return nil, err
	}
	return &kafkaBroker{plan: plan, client: client}, nil
}

func (b *kafkaBroker) close() { b.client.Close() }

// setup waits until the deleted topic is gone, which takes a moment after the answer.
func (b *kafkaBroker) setup(ctx context.Context) error {
	admin := kadm.NewClient(b.client)
	_, _ = admin.DeleteGroups(ctx, kafkaGroup)
	_, _ = admin.DeleteTopics(ctx, kafkaTopic)
	configs := map[string]*string{"max.message.bytes": kadm.StringPtr("10000000")}
	if b.plan.Synced {
		configs["flush.messages"] = kadm.StringPtr("1")
	}
	partitions := max(1, b.plan.Receivers)
	if b.plan.QueuePerTenant {
		partitions = b.plan.Tenants
	}
	for {
		_, err := admin.CreateTopic(ctx, int32(partitions), 1, configs, kafkaTopic)
		if err == nil || !errors.Is(err, kerr.TopicAlreadyExists) {
			return err
		}
		if err := sleep(ctx, pollWait); err != nil {
			return err
		}
	}
}

func (b *kafkaBroker) sender(context.Context) (sender, error) { return &kafkaSender{b: b}, nil }

type kafkaSender struct{ b *kafkaBroker }

func (s *kafkaSender) close() {}

func (s *kafkaSender) send(ctx context.Context, batch []message) error {
	records := make([]*kgo.Record, len(batch))
	for i, m := range batch {
		records[i] = &kgo.Record{Value: m.payload, Partition: int32(s.b.plan.queueOf(m.tenant))}
	}
	return s.b.client.ProduceSync(ctx, records...).FirstErr()
}

// kafkaCommitsMax is how many settled batches may wait for their commit.
const kafkaCommitsMax = 64

type kafkaReceiver struct {
	b       *kafkaBroker
	client  *kgo.Client
	settled chan []*kgo.Record
	ended   chan struct{} // the committer has ended, and failed may be read
	failed  error
	closing sync.Once
}

func (b *kafkaBroker) receiver(context.Context) (receiver, error) {
	options := []kgo.Opt{
		kgo.SeedBrokers(b.plan.Addr), kgo.ConsumerGroup(kafkaGroup), kgo.ConsumeTopics(kafkaTopic),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()), kgo.DisableAutoCommit(), kgo.FetchMaxWait(pollWait),
	}
	if b.plan.QueuePerTenant {
		// A fetch takes little of each partition: what it holds of one tenant goes before all others.
		options = append(options, kgo.FetchMaxPartitionBytes(int32(noisyTakeMost*b.plan.Payload)))
	}
	client, err := kgo.NewClient(options...)
	if err != nil {
		return nil, err
	}
	r := &kafkaReceiver{
		b: b, client: client, settled: make(chan []*kgo.Record, kafkaCommitsMax), ended: make(chan struct{}),
	}
	go r.commitAll()
	return r, nil
}

// commitAll commits what is settled until there is no more to come.
func (r *kafkaReceiver) commitAll() {
	defer close(r.ended)
	for records := range r.settled {
		for more := len(r.settled); more > 0; more-- {
			records = append(records, <-r.settled...)
		}
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		r.failed = r.client.CommitRecords(ctx, records...)
		cancel()
		if r.failed != nil {
			return
		}
	}
}

// close commits what is left, then leaves the group, so that the next receiver gets its partitions at once.
func (r *kafkaReceiver) close() {
	r.closing.Do(func() { close(r.settled) })
	<-r.ended
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	_ = r.client.LeaveGroupContext(ctx)
	r.client.Close()
}

func (r *kafkaReceiver) receive(ctx context.Context, most int) ([]delivery, error) {
	waiting, cancel := context.WithTimeout(ctx, pollWait)
	defer cancel()
	fetches := r.client.PollRecords(waiting, most)
	for _, failed := range fetches.Errors() {
		if !errors.Is(failed.Err, context.DeadlineExceeded) && !errors.Is(failed.Err, context.Canceled) {
			return nil, failed.Err
		}
	}
	var deliveries []delivery
	fetches.EachRecord(func(record *kgo.Record) {
		deliveries = append(deliveries, delivery{payload: record.Value, tag: record})
	})
	return deliveries, nil
}

func (r *kafkaReceiver) settle(ctx context.Context, deliveries []delivery) error {
	records := make([]*kgo.Record, len(deliveries))
	for i, d := range deliveries {
		records[i] = d.tag.(*kgo.Record)
	}
	select {
	case r.settled <- records:
		return nil
	case <-r.ended:
		return r.failed
	case <-ctx.Done():
		return ctx.Err()
	}
}

// giveBack sends the messages again: a log has no way to skip one and come back to it.
func (r *kafkaReceiver) giveBack(ctx context.Context, deliveries []delivery, _ time.Duration) error {
	for _, d := range deliveries {
		record := d.tag.(*kgo.Record)
		again := &kgo.Record{Value: record.Value, Partition: record.Partition}
		if err := r.b.client.ProduceSync(ctx, again).FirstErr(); err != nil {
			return err
		}
	}
	return r.settle(ctx, deliveries)
}
