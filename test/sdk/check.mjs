// Uses the OpenAI and Anthropic SDKs as a program does that knows nothing of a gateway: the
// SDKs read where to go from their own environment variables. Prints what it was answered.
import assert from 'node:assert'
import Anthropic from '@anthropic-ai/sdk'
import OpenAI from 'openai'

const mode = process.env.MODE // all, openai or anthropic: which SDK is to be used, and how much of it
const ask = [{ role: 'user', content: 'Say something.' }]
const schema = { type: 'object', properties: { at: { type: 'string' } }, required: ['at'] }

function show(name, ...values) {
  for (const v of values) assert(v, `${name}: ${JSON.stringify(values)}`)
  console.log(name, JSON.stringify(values))
}

async function chat(client) {
  const tools = [{ type: 'function', function: { name: 'look', parameters: schema } }]
  let r = await client.chat.completions.create({ model: 'm', messages: ask })
  show('chat', r.choices[0].message.content, r.usage.completion_tokens, r.choices[0].finish_reason)
  let words = ''
  for await (const chunk of await client.chat.completions.create({ model: 'm', messages: ask, stream: true })) {
    words += chunk.choices[0].delta.content ?? ''
  }
  show('chat stream', words)
  r = await client.chat.completions.create({ model: 'm', messages: ask, tools, tool_choice: 'required' })
  const calls = r.choices[0].message.tool_calls
  show('chat tool', calls[0].function.name, calls[0].function.arguments)
  const turns = [...ask, r.choices[0].message, ...calls.map((c) => ({ role: 'tool', tool_call_id: c.id, content: 'A cat.' }))]
  r = await client.chat.completions.create({ model: 'm', messages: turns, tools, tool_choice: 'none' })
  show('chat after tool', r.choices[0].message.content)
  const form = { type: 'json_schema', json_schema: { name: 'place', strict: true, schema: { ...schema, additionalProperties: false } } }
  r = await client.chat.completions.create({ model: 'm', messages: ask, response_format: form })
  show('chat schema', JSON.parse(r.choices[0].message.content))
  const many = await Promise.all(
    Array.from({ length: 50 }, (_, i) => client.chat.completions.create({ model: 'm', messages: [{ role: 'user', content: `Question ${i}.` }] })),
  )
  show('many at once', many.map((a) => a.choices[0].message.content))
}

async function responses(client) {
  let r = await client.responses.create({ model: 'm', input: 'Say something.' })
  show('responses', r.output_text, r.usage.output_tokens)
  const kinds = []
  for await (const e of await client.responses.create({ model: 'm', input: 'Say something.', stream: true })) kinds.push(e.type)
  show('responses stream', kinds[0], kinds.at(-1))
  const tools = [{ type: 'function', name: 'look', strict: false, parameters: schema }]
  const stream = client.responses.stream({ model: 'm', input: ask, tools, tool_choice: 'required', store: false })
  r = await stream.finalResponse()
  const calls = r.output.filter((o) => o.type === 'function_call')
  show('responses tool', calls[0].name, JSON.parse(calls[0].arguments))
  const input = [...ask, ...r.output, ...calls.map((c) => ({ type: 'function_call_output', call_id: c.call_id, output: 'A cat.' }))]
  r = await client.responses.create({ model: 'm', input, tools, tool_choice: 'none', store: false })
  show('responses after tool', r.output_text)
}

async function rest(client) {
  show('embeddings', (await client.embeddings.create({ model: 'm', input: ['a', 'b'] })).data.length)
  show('models', (await client.models.list()).data.map((m) => m.id))
  await assert.rejects(client.chat.completions.create({ model: 'm', messages: [] }), OpenAI.BadRequestError)
}

async function messages(client) {
  const tools = [{ name: 'look', input_schema: schema }]
  let r = await client.messages.create({ model: 'm', max_tokens: 200, messages: ask })
  show('messages', r.content[0].text, r.usage.output_tokens, r.stop_reason)
  const s = client.messages.stream({ model: 'm', max_tokens: 200, messages: ask })
  const final = await s.finalMessage()
  show('messages stream', final.content[0].text, final.usage.output_tokens, final.stop_reason)
  r = await client.messages.create({ model: 'm', max_tokens: 200, messages: ask, tools, tool_choice: { type: 'any' } })
  const calls = r.content.filter((b) => b.type === 'tool_use')
  show('messages tool', calls[0].name, calls[0].input)
  const results = calls.map((c) => ({ type: 'tool_result', tool_use_id: c.id, content: 'A cat.' }))
  const turns = [...ask, { role: 'assistant', content: r.content }, { role: 'user', content: results }]
  r = await client.messages.create({ model: 'm', max_tokens: 200, messages: turns, tools, tool_choice: { type: 'none' } })
  show('messages after tool', r.content[0].text)
}

if (mode === 'all' || mode === 'openai') await chat(new OpenAI())
if (mode === 'all' || mode === 'openai') await responses(new OpenAI())
if (mode === 'all') await rest(new OpenAI())
if (mode === 'all' || mode === 'anthropic') await messages(new Anthropic())
if (mode === 'all') show('count', (await new Anthropic().messages.countTokens({ model: 'm', messages: ask })).input_tokens)
