package workspace

import (
	"fmt"
	"path/filepath"
	"slices"
	"syscall"
	"testing"
	"time"
)

// BenchmarkTurnsEnd publishes and saves what a turn has made, by a thread whose work is
// kept off the machine and by one whose work is not, in turns: the time that it takes and
// what this process and git compute for it, each as a ratio. A turn commits a file and
// leaves one that is not committed.
func BenchmarkTurnsEnd(b *testing.B) {
	r := newRoaming(b)
	r.goOn("a")
	kept := r.thread()
	r.dir = ""
	alone, _ := r.hut.begin(8, "")
	threads := []Thread{kept, alone}
	var took [2][]time.Duration
	var cpu [2]time.Duration
	for n := 0; b.Loop(); n++ {
		for i, t := range threads {
			r.dir = t.Dir
			r.commit("committed", fmt.Sprintln(n))
			r.write("not-committed", fmt.Sprintln(n))
			before, began := computed(), time.Now()
			if err := r.k.Publish(b.Context(), t, r.p); err != nil {
				b.Fatal(err)
			}
			if left, err := r.k.Save(b.Context(), t, r.p); left != "" || err != nil {
				b.Fatal(left, err)
			}
			took[i] = append(took[i], time.Since(began))
			cpu[i] += computed() - before
		}
	}
	for i, name := range []string{"kept", "alone"} {
		slices.Sort(took[i])
		b.ReportMetric(float64(took[i][len(took[i])/2].Microseconds())/1000, name+"-p50-ms")
		b.ReportMetric(float64(cpu[i].Microseconds())/1000/float64(len(took[i])), name+"-cpu-ms")
	}
	b.ReportMetric(float64(took[0][len(took[0])/2])/float64(took[1][len(took[1])/2]), "p50-ratio")
	b.ReportMetric(float64(cpu[0])/float64(cpu[1]), "cpu-ratio")
	b.ReportMetric(float64(r.shelf.size())/1024, "kept-KiB")
	if packs, err := filepath.Glob(filepath.Join(r.k.DataDir, "scratch/*")); err != nil || len(packs) > 0 {
		b.Errorf("%v are left, %v", packs, err)
	}
}

// computed is the processor time of this process and of those that it has waited for.
func computed() (d time.Duration) {
	for _, who := range []int{syscall.RUSAGE_SELF, syscall.RUSAGE_CHILDREN} {
		var u syscall.Rusage
		if err := syscall.Getrusage(who, &u); err != nil {
			panic(err) // it is always there
		}
		d += time.Duration(u.Utime.Nano() + u.Stime.Nano())
	}
	return d
}
