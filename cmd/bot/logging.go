package main

import (
	"os"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
)

// newLogger logs to standard error. redact, if not nil, masks whole lines, so that no library's error puts a secret
// into the log.
func newLogger(level, format string, redact func(string) string) *zap.Logger {
	l, err := zapcore.ParseLevel(level)
	if err != nil {
		l = zapcore.InfoLevel // readEnvironment has reported it
	}
	c := zap.NewProductionEncoderConfig()
	c.EncodeTime = zapcore.ISO8601TimeEncoder
	encoder := zapcore.NewJSONEncoder(c)
	if format == "console" {
		c.EncodeLevel = zapcore.CapitalLevelEncoder
		encoder = zapcore.NewConsoleEncoder(c)
	}
	return zap.New(zapcore.NewCore(encoder, zapcore.Lock(redactingWriter{os.Stderr, redact}), l))
}

type redactingWriter struct {
	*os.File
	redact func(string) string
}

func (w redactingWriter) Write(p []byte) (int, error) {
	if w.redact == nil {
		return w.File.Write(p)
	}
	if _, err := w.File.WriteString(w.redact(string(p))); err != nil {
		return 0, err
	}
	return len(p), nil
}
