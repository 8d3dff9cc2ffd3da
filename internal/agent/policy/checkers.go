package policy

import (
	"strings"
)

// checkers are the roles that Go reads, by the names that specifications call
// them. The larger ones have files of their own.
var checkers = map[string]checker{
	"sed":         checkSed,
	"awk":         checkAwk,
	"jq":          checkJq,
	"yq":          checkYq,
	"printf":      checkPrintf,
	"clock":       checkClock,
	"columns":     checkColumns,
	"header":      checkHeader,
	"write-out":   checkWriteOut,
	"pretty":      checkPretty,
	"lines":       checkLines,
	"refspec":     checkRefspec,
	"key":         checkKey,
	"glob":        checkGlob,
	"kind":        checkKind,
	"kube-print":  checkKubePrint,
	"archive":     checkArchive,
	"zip":         checkZip,
	"download":    checkDownload,
	"s3":          checkS3,
	"jmespath":    checkQuery,
	"zip-out":     checkZipOut,
	"archive-out": checkArchiveOut,
	"moved":       checkMoved,
	"dd":          checkDd,
	"argument":    checkArgument,
	"location":    checkLocation,
	"sources":     checkSources,
	"expression":  checkExpression,
	"libtest":     checkLibtest,
	"lints":       checkLints,
	"testfilter":  checkTestFilter,
	"gradletask":  checkGradleTask,
	"raketask":    checkRakeTask,
	"recipe":      checkRecipe,
}

func harmlessIf(ok bool, why string) checked {
	if ok {
		return checked{}
	}
	return checked{why: why}
}

// madeOf reports whether a text holds no other bytes than these.
func madeOf(text, bytes string) bool { return strings.Trim(text, bytes) == "" }

// checkYq reads the first operand of yq: a filter, or the file if there is one of
// that name.
func checkYq(word string) checked {
	c := checkJq(word)
	if c.why == "" {
		c.reads = []string{word}
	}
	return c
}

// checkPrintf reads the format of printf: %n stores into a variable, whose
// subscript bash evaluates.
func checkPrintf(word string) checked {
	const why = "the format of printf does more than print"
	_, rest, found := strings.Cut(word, "%")
	for ; found; _, rest, found = strings.Cut(rest, "%") {
		rest = strings.TrimLeft(rest, "#-+ '*."+digits+"hlLjzt")
		switch {
		case rest == "":
			return checked{}
		case rest[0] == '(': // %(…)T, a time
			end := strings.Index(rest, ")T")
			if end < 0 {
				return checked{why: why}
			}
			rest = rest[end+2:]
		case strings.IndexByte("%diouxXeEfFgGaAcsbqQ", rest[0]) < 0:
			return checked{why: why}
		default:
			rest = rest[1:]
		}
	}
	return checked{}
}

// checkClock reads the operand of date: +FORMAT shows the time, any other sets it.
func checkClock(word string) checked {
	return harmlessIf(strings.HasPrefix(word, "+"), "date sets the clock")
}

var psColumns = words("pid ppid pgid sid uid user euser ruser gid group tty tt tname stat state s f pri ni nice pcpu %cpu pmem %mem rss vsz sz time etime etimes cputime cputimes start stime lstart start_time comm command cmd args ucmd ucomm wchan nlwp thcount psr lwp tid cls class drs trs label fname bsdstart bsdtime")

// checkColumns reads the columns that ps shows, none of which is the environment.
func checkColumns(word string) checked {
	for _, c := range strings.FieldsFunc(word, func(r rune) bool { return r == ',' || r == ' ' }) {
		name, head, titled := strings.Cut(c, "=")
		if name = strings.TrimLeft(name, "+-"); !psColumns[name] || titled && head != "" {
			return checked{why: "the column " + c + " of ps is not known"}
		}
	}
	return checked{}
}

// checkHeader reads the value of options of curl that read a file after @.
func checkHeader(word string) checked {
	return harmlessIf(!strings.HasPrefix(word, "@"), "curl reads the file after @")
}

// checkWriteOut reads what curl prints at the end: literal text and %{variables},
// but not %output{file} and %header{…}.
func checkWriteOut(word string) checked {
	const why = "curl writes to files that its format names"
	if strings.HasPrefix(word, "@") {
		return checked{why: "curl reads the file after @"}
	}
	for rest := word; ; {
		_, after, found := strings.Cut(rest, "%")
		if !found {
			return checked{}
		}
		if strings.HasPrefix(after, "%") {
			rest = after[1:]
			continue
		}
		name, tail, ok := strings.Cut(after, "}")
		if !ok || !strings.HasPrefix(name, "{") || !madeOf(name[1:], nameBytes+".") {
			return checked{why: why}
		}
		rest = tail
	}
}

// checkPretty reads a format of git log or git for-each-ref. %G… and signatures
// run gpg.
func checkPretty(word string) checked {
	const why = "the format makes git run gpg, or is not known"
	for i := 0; i < len(word); i++ {
		if word[i] != '%' {
			continue
		}
		if i++; i == len(word) {
			break
		}
		if strings.IndexByte("+- ", word[i]) >= 0 { // %+b: a newline before it, if any
			i++
		}
		rest := word[min(i, len(word)):]
		switch {
		case rest == "", strings.IndexByte("HhTtPpacdDSsbBefNgnmwxCr%<>|", rest[0]) >= 0:
		case rest[0] == '(':
			atom := strings.TrimLeft(rest[1:], "*")
			n := len(atom) - len(strings.TrimLeft(atom, nameBytes+"-"))
			if !prettyAtoms[atom[:n]] && atom[:n] != "HEAD" {
				return checked{why: why}
			}
		default:
			return checked{why: why}
		}
	}
	return checked{}
}

var prettyAtoms = words("objectmode path refname objecttype objectsize objectname deltabase upstream push symref worktreepath tree parent numparent object type tag author authorname authoremail authordate committer committername committeremail committerdate tagger taggername taggeremail taggerdate creator creatordate subject body contents trailers describe ahead-behind color align end if then else is-base decorate")

// checkLines reads git log -L: lines:file, of which the file is read.
func checkLines(word string) checked {
	i := strings.LastIndexByte(word, ':')
	if i < 1 || i == len(word)-1 {
		return checked{why: "the lines " + word + " cannot be read"}
	}
	return checked{reads: []string{word[i+1:]}}
}

// checkKey reads a key of git's configuration, which has a dot; what has none is an
// order, such as edit.
func checkKey(word string) checked {
	return harmlessIf(strings.Contains(word, ".") && madeOf(word, nameBytes+".-/@:^"), word+" is no key of git's configuration")
}

const refBytes = nameBytes + "-./@^~{}"

// checkRefspec reads what git pushes or fetches: a name, or one from:to. A + forces
// and an empty name deletes.
func checkRefspec(word string) checked {
	from, to, both := strings.Cut(word, ":")
	ok := from != "" && madeOf(from, refBytes) && madeOf(to, refBytes) && (!both || to != "")
	return harmlessIf(ok, "the refspec "+word+" forces, deletes or is not known")
}

var kubeKinds = words(
	"all pod pods po deployment deployments deploy service services svc ingress ingresses ing node nodes no namespace namespaces ns event events ev job jobs cronjob cronjobs cj",
	"replicaset replicasets rs statefulset statefulsets sts daemonset daemonsets ds endpoints ep endpointslice endpointslices hpa horizontalpodautoscaler horizontalpodautoscalers",
	"pv pvc persistentvolume persistentvolumes persistentvolumeclaim persistentvolumeclaims storageclass storageclasses sc networkpolicy networkpolicies netpol poddisruptionbudget poddisruptionbudgets pdb",
	"replicationcontroller replicationcontrollers rc limitrange limitranges limits resourcequota resourcequotas quota customresourcedefinition customresourcedefinitions crd crds priorityclass priorityclasses ingressclass ingressclasses",
)

// checkKind reads what kubectl gets or describes: kinds, perhaps with a name after
// a slash. Secrets and config maps are not among them.
func checkKind(word string) checked {
	for kind := range strings.SplitSeq(word, ",") {
		kind, name, _ := strings.Cut(kind, "/")
		if !kubeKinds[kind] || !madeOf(name, nameBytes+"-.") {
			return checked{why: "kubectl shows what " + word + " holds, which may be a secret"}
		}
	}
	return checked{}
}

// checkKubePrint reads the format of kubectl: none that is read from a file.
func checkKubePrint(word string) checked {
	name, _, _ := strings.Cut(word, "=")
	switch name {
	case "wide", "yaml", "json", "name", "jsonpath", "custom-columns", "go-template":
		return checked{}
	}
	return checked{why: "the format " + word + " of kubectl is not known"}
}

// checkArchive reads the archive of tar: one with a colon lies on another machine.
func checkArchive(word string) checked {
	if strings.Contains(word, ":") {
		return checked{why: "tar takes what stands before a colon for another machine"}
	}
	return checked{reads: []string{word}}
}

// checkZip reads the archive of unzip, which expands wildcards by itself.
func checkZip(word string) checked {
	if strings.ContainsAny(word, `*?[\`) {
		return checked{why: "unzip expands wildcards by itself"}
	}
	return checked{reads: []string{word, word + ".zip", word + ".ZIP"}}
}

// checkMoved reads what mv takes away, and what ln gives a second name: it is read
// by that name later, and written.
func checkMoved(word string) checked {
	return checked{trees: []string{word}, writes: []string{word}}
}

// checkDd reads an operand of dd.
func checkDd(word string) checked {
	name, value, _ := strings.Cut(word, "=")
	switch name {
	case "if":
		return checked{reads: []string{value}}
	case "of":
		return checked{writes: []string{value}}
	case "bs", "ibs", "obs", "cbs", "count", "skip", "iseek", "seek", "oseek", "conv", "iflag", "oflag", "status", "--help", "--version":
		return checked{}
	}
	return checked{why: "the operand " + word + " of dd is not known"}
}

// checkArchiveOut reads the archive that tar makes.
func checkArchiveOut(word string) checked {
	c := checkArchive(word)
	c.reads, c.writes = nil, c.reads
	return c
}

// checkZipOut reads the archive that zip makes or adds to.
func checkZipOut(word string) checked {
	return checked{writes: []string{word, word + ".zip"}}
}

// checkDownload reads the file that curl writes, in which #1 stands for a part of
// the address.
func checkDownload(word string) checked {
	switch {
	case word == "-":
		return checked{}
	case strings.Contains(word, "#"):
		return checked{why: "curl puts parts of the address into the name of the file"}
	}
	return checked{writes: []string{word}}
}

// checkS3 reads a bucket of S3.
func checkS3(word string) checked {
	rest, ok := strings.CutPrefix(word, "s3://")
	return harmlessIf(ok && madeOf(rest, nameBytes+"-./"), word+" is no bucket of S3")
}

// checkQuery reads a value of a cloud's tool, which takes file://… and an address
// for what it is to fetch the value from.
func checkQuery(word string) checked {
	return harmlessIf(!strings.Contains(word, "://"), word+" names where the value is to be read")
}

// checkGlob reads a glob of rg, which finds what is hidden and ignored too: one that
// leaves files out, or one for the files of a language.
func checkGlob(word string) checked {
	i := strings.LastIndex(word, "*.")
	ok := strings.HasPrefix(word, "!") || i >= 0 && sourceSuffixes[word[i+2:]]
	return harmlessIf(ok, "the glob "+word+" may name hidden files")
}

var sourceSuffixes = map[string]bool{
	"go": true, "js": true, "jsx": true, "ts": true, "tsx": true, "mjs": true, "vue": true, "svelte": true, "py": true, "rb": true, "rs": true, "java": true, "kt": true, "scala": true,
	"c": true, "h": true, "cc": true, "cpp": true, "hpp": true, "cs": true, "php": true, "swift": true, "md": true, "html": true, "css": true, "scss": true, "sql": true, "proto": true, "sh": true,
}
