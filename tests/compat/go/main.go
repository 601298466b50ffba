// SPDX-License-Identifier: Apache-2.0

// The client program of lib.sh, with two libraries: clients franz|sarama VERB ARGUMENT...
package main

import (
	"cmp"
	"fmt"
	"os"
	"runtime/debug"
	"slices"
	"strings"
)

const broker = "127.0.0.1:9092"

type header struct{ name, value string }

type record struct {
	key, value []byte // nil is null
	headers    []header
}

func records() []record {
	r := []record{
		{[]byte("k1"), []byte("v1"), []header{{"h", "1"}, {"h", "2"}}},
		{nil, []byte("v2"), nil},
		{[]byte{}, []byte("v3"), nil},
		{[]byte("k4"), []byte{}, nil},
		{[]byte("k5"), nil, nil},
	}
	for i := 5; i < 505; i++ {
		r = append(r, record{[]byte("b"), fmt.Appendf(nil, "bulk %d of five hundred, alike enough to shrink", i), nil})
	}
	return r
}

func text(b []byte) string {
	if b == nil {
		return "~"
	}
	return "<" + string(b) + ">"
}

func show(offset int64, r record) {
	var hs []string
	for _, h := range r.headers {
		hs = append(hs, h.name+"="+h.value)
	}
	if hs == nil {
		hs = []string{"-"}
	}
	fmt.Println(offset, text(r.key), text(r.value), strings.Join(hs, ","))
}

type position struct {
	partition int32
	offset    int64
}

func showPositions(ps []position) {
	slices.SortFunc(ps, func(a, b position) int {
		return cmp.Or(cmp.Compare(a.partition, b.partition), cmp.Compare(a.offset, b.offset))
	})
	for _, p := range ps {
		fmt.Println(p.partition, p.offset)
	}
}

// The offsets found for times, as lib.sh wants them.
func showTimes(found []int64) {
	var out []string
	for _, o := range found {
		if o < 0 {
			out = append(out, "end")
		} else {
			out = append(out, fmt.Sprint(o))
		}
	}
	fmt.Println(strings.Join(out, " "))
}

func must(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func got[T any](v T, err error) T {
	must(err)
	return v
}

func version(module string) {
	info, _ := debug.ReadBuildInfo()
	for _, d := range info.Deps {
		if d.Path == module {
			fmt.Println(module[strings.LastIndex(module, "/")+1:], strings.TrimPrefix(d.Version, "v"))
		}
	}
}

func main() {
	libraries := map[string]map[string]func([]string){"franz": franz, "sarama": saramaVerbs}
	libraries[os.Args[1]][os.Args[2]](os.Args[3:])
}
