// The Vercel AI SDK on both formats, whole and streamed.
import assert from 'node:assert'
import { createAnthropic } from '@ai-sdk/anthropic'
import { createOpenAI } from '@ai-sdk/openai'
import { generateText, streamText } from 'ai'

const { MODEL, OPENAI_BASE_URL, ANTHROPIC_BASE_URL } = process.env
for (const model of [createOpenAI({ baseURL: OPENAI_BASE_URL }).chat(MODEL), createAnthropic({ baseURL: ANTHROPIC_BASE_URL + '/v1' })(MODEL)]) {
  const r = await generateText({ model, prompt: 'Once upon a time', maxOutputTokens: 24 })
  assert(r.usage.outputTokens > 0, JSON.stringify(r.usage))
  let parts = 0
  for await (const _ of streamText({ model, prompt: 'Once upon a time', maxOutputTokens: 24 }).fullStream) parts++
  assert(parts > 2)
}
