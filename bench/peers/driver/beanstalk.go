package main

import (
	"context"
	"errors"
	"time"

	"github.com/beanstalkd/go-beanstalk"
)

// beanstalkBroker is beanstalkd: a connection a goroutine, one command at a time, since its clients don't pipeline. A
// batch is so many commands in turn.
type beanstalkBroker struct{ plan Plan }

const (
	beanstalkPriority = 1024
	beanstalkTimeToDo = time.Minute
)

func newBeanstalk(plan Plan) (broker, error) {
	conn, err := beanstalk.Dial("tcp", plan.Addr)
	if err != nil {
		return nil, err
	}
	return &beanstalkBroker{plan: plan}, conn.Close()
}

func (b *beanstalkBroker) close() {}

// setup has nothing to make: tubes are there once something is put into them, and each cell has a server of its own.
func (b *beanstalkBroker) setup(context.Context) error { return nil }

type beanstalkSession struct {
	b     *beanstalkBroker
	conn  *beanstalk.Conn
	tubes map[int]*beanstalk.Tube
	watch *beanstalk.TubeSet
}

func (b *beanstalkBroker) session() (*beanstalkSession, error) {
	conn, err := beanstalk.Dial("tcp", b.plan.Addr)
	if err != nil {
		return nil, err
	}
	return &beanstalkSession{b: b, conn: conn, tubes: map[int]*beanstalk.Tube{}}, nil
}

func (b *beanstalkBroker) sender(context.Context) (sender, error) { return b.session() }

func (b *beanstalkBroker) receiver(context.Context) (receiver, error) {
	s, err := b.session()
	if err != nil {
		return nil, err
	}
	names := make([]string, b.plan.queues())
	for queue := range names {
		names[queue] = queueName(queue)
	}
	s.watch = beanstalk.NewTubeSet(s.conn, names...)
	return s, nil
}

func (s *beanstalkSession) close() { s.conn.Close() }

func (s *beanstalkSession) send(_ context.Context, batch []message) error {
	for _, m := range batch {
		queue := s.b.plan.queueOf(m.tenant)
		tube := s.tubes[queue]
		if tube == nil {
			tube = beanstalk.NewTube(s.conn, queueName(queue))
			s.tubes[queue] = tube
		}
		if _, err := tube.Put(m.payload, beanstalkPriority, 0, beanstalkTimeToDo); err != nil {
			return err
		}
	}
	return nil
}

func (s *beanstalkSession) receive(_ context.Context, most int) ([]delivery, error) {
	var deliveries []delivery
	// The protocol counts seconds; a first wait of 0 would make an idle receiver spin.
	wait := time.Second
	for len(deliveries) < most {
		id, body, err := s.watch.Reserve(wait)
		if errors.Is(err, beanstalk.ErrTimeout) {
			break
		}
		if err != nil {
			return nil, err
		}
		deliveries = append(deliveries, delivery{payload: body, tag: id})
		wait = 0
	}
	return deliveries, nil
}

func (s *beanstalkSession) settle(_ context.Context, deliveries []delivery) error {
	for _, d := range deliveries {
		if err := s.conn.Delete(d.tag.(uint64)); err != nil {
			return err
		}
	}
	return nil
}

// giveBack delays by whole seconds, rounded up: the protocol has nothing finer.
func (s *beanstalkSession) giveBack(_ context.Context, deliveries []delivery, after time.Duration) error {
	delay := (after + time.Second - 1).Truncate(time.Second)
	for _, d := range deliveries {
		if err := s.conn.Release(d.tag.(uint64), beanstalkPriority, delay); err != nil {
			return err
		}
	}
	return nil
}
