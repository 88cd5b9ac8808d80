import { appendFileSync } from 'node:fs'
import { context, trace } from '@opentelemetry/api'
import { AsyncLocalStorageContextManager } from '@opentelemetry/context-async-hooks'
import { BasicTracerProvider, type ReadableSpan, type SpanProcessor } from '@opentelemetry/sdk-trace-base'

/* A minimal OpenTelemetry SDK, for `node --import`: writes each ended span as a line to the file in SPANS. */
const file = process.env['SPANS'] ?? ''

function lineOf(span: ReadableSpan): string {
  const { name, attributes, status } = span
  const parent = span.parentSpanContext?.spanId
  return `${JSON.stringify({ name, attributes, parent, id: span.spanContext().spanId, status })}\n`
}

/** Writes synchronously: the process may be killed at any time. */
const writer: SpanProcessor = {
  onStart: () => {},
  onEnd: (span) => appendFileSync(file, lineOf(span)),
  forceFlush: async () => {},
  shutdown: async () => {},
}

if (file !== '') {
  context.setGlobalContextManager(new AsyncLocalStorageContextManager().enable())
  trace.setGlobalTracerProvider(new BasicTracerProvider({ spanProcessors: [writer] }))
}
