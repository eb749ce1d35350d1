package holdfast

import (
	"context"
	"log/slog"
	"strings"
	"sync"

	"holdfast/wire"
)

const (
	maxLogLines     = 100
	maxLogLineBytes = 2000
)

// logLines keeps the newest log lines of an attempt.
type logLines struct {
	mu      sync.Mutex
	lines   []wire.LogLineOut
	dropped int
}

func (l *logLines) add(line wire.LogLineOut) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.lines) == maxLogLines {
		l.lines, l.dropped = l.lines[1:], l.dropped+1
	}
	l.lines = append(l.lines, line)
}

func (l *logLines) all() *wire.LogsIn {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.lines) == 0 {
		return nil
	}
	return &wire.LogsIn{Lines: append([]wire.LogLineOut{}, l.lines...), Dropped: &l.dropped}
}

// logHandler passes records on and keeps them as lines of the attempt.
type logHandler struct {
	inner slog.Handler
	lines *logLines
	group string
	attrs []string
}

func (h *logHandler) Enabled(ctx context.Context, level slog.Level) bool {
	return level >= slog.LevelInfo || h.inner.Enabled(ctx, level)
}

func (h *logHandler) Handle(ctx context.Context, record slog.Record) error {
	parts := append([]string{record.Message}, h.attrs...)
	record.Attrs(func(attr slog.Attr) bool {
		parts = append(parts, h.group+attr.String())
		return true
	})
	text := strings.Join(parts, " ")
	if len(text) > maxLogLineBytes {
		text = strings.ToValidUTF8(text[:maxLogLineBytes], "") + "…"
	}
	h.lines.add(wire.LogLineOut{
		At: record.Time.UTC(), Level: levelName(record.Level), Message: text,
	})
	if !h.inner.Enabled(ctx, record.Level) {
		return nil
	}
	return h.inner.Handle(ctx, record)
}

func levelName(level slog.Level) string {
	switch {
	case level < slog.LevelInfo:
		return "debug"
	case level < slog.LevelWarn:
		return "info"
	case level < slog.LevelError:
		return "warning"
	}
	return "error"
}

func (h *logHandler) WithAttrs(attrs []slog.Attr) slog.Handler {
	texts := append([]string{}, h.attrs...)
	for _, attr := range attrs {
		texts = append(texts, h.group+attr.String())
	}
	return &logHandler{h.inner.WithAttrs(attrs), h.lines, h.group, texts}
}

func (h *logHandler) WithGroup(name string) slog.Handler {
	if name == "" {
		return h
	}
	return &logHandler{h.inner.WithGroup(name), h.lines, h.group + name + ".", h.attrs}
}
