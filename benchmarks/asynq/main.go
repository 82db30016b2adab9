// asynq behind the protocol of lines in ../subjects/external.ts: one JSON request per line, one JSON line as the answer.
package main

import (
	"bufio"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/url"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"

	"context"

	"github.com/hibiken/asynq"
)

const (
	checkEvery = 10 * time.Millisecond
	kind       = "bench"
	// As many connections as calls under way: by default there are ten for each core, and calls would wait for one.
	poolSize = 300
)

type request struct {
	ID           int     `json:"id"`
	Do           string  `json:"do"`
	URL          string  `json:"url"`
	Queue        string  `json:"queue"`
	PayloadBytes int     `json:"payloadBytes"`
	Clients      int     `json:"clients"`
	Dues         []int64 `json:"dues"`
	Count        int     `json:"count"`
	InFlight     int     `json:"inFlight"`
	Consumers    int     `json:"consumers"`
	Handler      string  `json:"handler"`
	CA           string  `json:"ca"`
}

type session struct {
	request
	connection asynq.RedisClientOpt
	client     *asynq.Client
	servers    []*asynq.Server
}

func main() {
	var s session
	answers := make(chan map[string]any)
	go func() {
		out := json.NewEncoder(os.Stdout)
		for answer := range answers {
			_ = out.Encode(answer)
		}
	}()
	lines := bufio.NewScanner(os.Stdin)
	lines.Buffer(nil, 64<<20)
	for lines.Scan() {
		var asked request
		if err := json.Unmarshal(lines.Bytes(), &asked); err != nil {
			answers <- map[string]any{"error": err.Error()}
			continue
		}
		if asked.Do == "open" {
			s.request = asked
		}
		go func() {
			answer, err := s.answer(asked)
			if answer == nil {
				answer = map[string]any{}
			}
			if err != nil {
				answer["error"] = err.Error()
			}
			answer["id"] = asked.ID
			answers <- answer
		}()
	}
	for _, server := range s.servers {
		server.Stop()
	}
}

func (s *session) answer(asked request) (map[string]any, error) {
	switch asked.Do {
	case "open":
		address, err := url.Parse(s.URL)
		if err != nil {
			return nil, err
		}
		s.connection = asynq.RedisClientOpt{Addr: address.Host, PoolSize: poolSize}
		if s.CA != "" {
			authorities := x509.NewCertPool()
			authorities.AppendCertsFromPEM([]byte(s.CA))
			s.connection.TLSConfig = &tls.Config{ServerName: address.Hostname(), RootCAs: authorities}
		}
		s.client = asynq.NewClient(s.connection)
		return nil, nil
	case "ready":
		return nil, s.client.Ping()
	case "schedule":
		return nil, s.enqueue(len(asked.Dues), asked.InFlight, func(i int) time.Time { return time.UnixMilli(asked.Dues[i]) })
	case "fill":
		now := time.Now()
		return nil, s.enqueue(asked.Count, asked.InFlight, func(int) time.Time {
			return now.Add(time.Hour + time.Duration(rand.Int64N(int64(time.Hour))))
		})
	case "load":
		return nil, s.enqueue(asked.Count, asked.InFlight, func(int) time.Time { return time.Time{} })
	case "add":
		started, due := time.Now(), time.Now().Add(time.Hour)
		err := s.enqueue(asked.Count, asked.InFlight, func(int) time.Time { return due })
		return map[string]any{"seconds": time.Since(started).Seconds()}, err
	case "produce":
		return nil, s.produce(asked.Dues)
	case "take":
		return s.take(asked.Count, asked.Consumers, asked.Handler == "timer")
	}
	return nil, fmt.Errorf("no such request: %s", asked.Do)
}

// Each at its moment, whatever has become of those before it.
func (s *session) produce(at []int64) error {
	var group sync.WaitGroup
	errs := make(chan error, len(at))
	for i, moment := range at {
		time.Sleep(time.Until(time.UnixMilli(moment)))
		group.Add(1)
		go func() {
			defer group.Done()
			if err := s.enqueueOne(i, time.Time{}); err != nil {
				errs <- err
			}
		}()
	}
	group.Wait()
	return firstOf(errs)
}

func firstOf(errs chan error) error {
	select {
	case err := <-errs:
		return err
	default:
		return nil
	}
}

func (s *session) enqueueOne(i int, due time.Time) error {
	text := strconv.Itoa(i) + ":"
	payload := text + strings.Repeat("x", max(0, s.PayloadBytes-len(text)))
	options := []asynq.Option{asynq.Queue(s.Queue)}
	if !due.IsZero() {
		options = append(options, asynq.ProcessAt(due))
	}
	_, err := s.client.Enqueue(asynq.NewTask(kind, []byte(payload)), options...)
	return err
}

func (s *session) enqueue(count, inFlight int, due func(int) time.Time) error {
	var group sync.WaitGroup
	errs := make(chan error, inFlight)
	next := make(chan int, inFlight)
	for range inFlight {
		group.Add(1)
		go func() {
			defer group.Done()
			for i := range next {
				if err := s.enqueueOne(i, due(i)); err != nil {
					select {
					case errs <- err:
					default:
					}
				}
			}
		}()
	}
	for i := range count {
		next <- i
	}
	close(next)
	group.Wait()
	return firstOf(errs)
}

func (s *session) take(count, consumers int, waits bool) (map[string]any, error) {
	var lock sync.Mutex
	seen := make(map[int]bool, count)
	indexes, at := make([]int, 0, count), make([]int64, 0, count)
	done := make(chan struct{})
	handler := func(_ context.Context, task *asynq.Task) error {
		if waits {
			time.Sleep(time.Millisecond)
		}
		now := time.Now().UnixMicro()
		number, _, _ := strings.Cut(string(task.Payload()), ":")
		index, err := strconv.Atoi(number)
		if err != nil {
			return err
		}
		lock.Lock()
		defer lock.Unlock()
		if len(seen) == count {
			return nil
		}
		indexes, at = append(indexes, index), append(at, now)
		seen[index] = true
		if len(seen) == count {
			close(done)
		}
		return nil
	}
	clients := max(1, s.Clients)
	for range clients {
		server := asynq.NewServer(s.connection, asynq.Config{
			Concurrency:              max(1, consumers/clients),
			Queues:                   map[string]int{s.Queue: 1},
			DelayedTaskCheckInterval: checkEvery,
			TaskCheckInterval:        checkEvery,
			LogLevel:                 asynq.ErrorLevel,
		})
		mux := asynq.NewServeMux()
		mux.HandleFunc(kind, handler)
		if err := server.Start(mux); err != nil {
			return nil, err
		}
		s.servers = append(s.servers, server)
	}
	<-done
	lock.Lock()
	defer lock.Unlock()
	return map[string]any{"indexes": indexes, "at": at}, nil
}
