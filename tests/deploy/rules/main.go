// Checks a file of Prometheus' rules as Prometheus does, and says which alerts fire.
//
//	rules FILE <CASES
//
// Each line of CASES is a JSON array of series, as promtool's unit tests write them, of
// one sample a minute: ["up{job=\"mq\"} 0+1x10"]. For each it prints a JSON array of the
// alerts whose expression has a result at the last sample.
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"time"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/histogram"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/rulefmt"
	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/promql/parser"
	"github.com/prometheus/prometheus/storage"
	"github.com/prometheus/prometheus/tsdb/chunkenc"
	"github.com/prometheus/prometheus/tsdb/chunks"
)

const everyMs = 60_000

var reader = parser.NewParser(parser.Options{})

// A sample is a number at a time.
type sample struct {
	ms    int64
	value float64
}

func (s sample) T() int64                      { return s.ms }
func (s sample) ST() int64                     { return 0 }
func (s sample) F() float64                    { return s.value }
func (s sample) H() *histogram.Histogram       { return nil }
func (s sample) FH() *histogram.FloatHistogram { return nil }
func (s sample) Type() chunkenc.ValueType      { return chunkenc.ValFloat }
func (s sample) Copy() chunks.Sample           { return s }

// A set has the series that a query wants.
type set struct {
	storage.SeriesSet
	series []storage.Series
	at     int
}

func (s *set) Next() bool         { s.at++; return s.at <= len(s.series) }
func (s *set) At() storage.Series { return s.series[s.at-1] }

// Read makes series of their text, and says when the last sample is.
func read(texts []string) ([]storage.Series, time.Time, error) {
	var series []storage.Series
	var last int64
	for _, text := range texts {
		of, values, err := reader.ParseSeriesDesc(text)
		if err != nil {
			return nil, time.Time{}, err
		}
		var samples []chunks.Sample
		for number, value := range values {
			if !value.Omitted {
				samples = append(samples, sample{int64(number) * everyMs, value.Value})
			}
		}
		last = max(last, int64(len(values)-1)*everyMs)
		series = append(series, storage.NewListSeries(of, samples))
	}
	return series, time.UnixMilli(last), nil
}

func wanted(of labels.Labels, matchers []*labels.Matcher) bool {
	for _, one := range matchers {
		if !one.Matches(of.Get(one.Name)) {
			return false
		}
	}
	return true
}

// Query has the engine look into series.
func query(series []storage.Series) storage.Queryable {
	find := func(_ bool, _ *storage.SelectHints, matchers ...*labels.Matcher) storage.SeriesSet {
		found := set{SeriesSet: storage.EmptySeriesSet()}
		for _, one := range series {
			if wanted(one.Labels(), matchers) {
				found.series = append(found.series, one)
			}
		}
		return &found
	}
	return &storage.MockQueryable{MockQuerier: &storage.MockQuerier{SelectMockFunction: find}}
}

// Firing names the alerts whose expression has a result.
func firing(engine *promql.Engine, groups *rulefmt.RuleGroups, texts []string) ([]string, error) {
	series, at, err := read(texts)
	if err != nil {
		return nil, err
	}
	names := []string{}
	for _, group := range groups.Groups {
		for _, rule := range group.Rules {
			asked, err := engine.NewInstantQuery(context.Background(), query(series), nil, rule.Expr, at)
			if err != nil {
				return nil, err
			}
			result := asked.Exec(context.Background())
			found, err := result.Vector()
			if err != nil {
				return nil, fmt.Errorf("%s: %w", rule.Alert, err)
			}
			if len(found) > 0 {
				names = append(names, rule.Alert)
			}
			asked.Close()
		}
	}
	return names, nil
}

func main() {
	groups, errs := rulefmt.ParseFile(os.Args[1], false, model.UTF8Validation, reader, slog.Default())
	for _, err := range errs {
		fmt.Fprintln(os.Stderr, err)
	}
	if len(errs) > 0 {
		os.Exit(1)
	}
	engine := promql.NewEngine(promql.EngineOpts{MaxSamples: 100_000, Timeout: time.Minute, Parser: reader})
	lines := bufio.NewScanner(os.Stdin)
	for lines.Scan() {
		var texts []string
		err := json.Unmarshal(lines.Bytes(), &texts)
		if err == nil {
			var names []string
			if names, err = firing(engine, groups, texts); err == nil {
				err = json.NewEncoder(os.Stdout).Encode(names)
			}
		}
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	}
}
