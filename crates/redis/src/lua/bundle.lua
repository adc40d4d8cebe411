-- Claims and releases of many locks at once, each as far as its fast path fits: single calls cost up to twice as much.
--
-- KEYS     the locks' keys, each once
-- ARGV[1]  for each, packed: 0 release or 1 claim, how many bytes its card has; then, as in the call for one lock, its
--          numbers from the retention to what the fast path looks at last, and its card
-- returns  for each what the call for one lock would answer, or nothing: then it has changed nothing, and is to be sent
--          by itself
-- cost     TIME, MGET, and for each lock 2 redis.calls, as in acquire_head.lua and release_head.lua, which are the
--          functions claim and release here
local numbers, at = ARGV[1], 1
local records, answers = redis.call('MGET', unpack(KEYS)), {}
for place, key in ipairs(KEYS) do
  local s = records[place]
  local kind, length, from = struct.unpack('>BI2', numbers, at)
  local behind = from + (kind == 1 and 41 or 26)
  at = behind + length
  local card = string.sub(numbers, behind, at - 1)
  -- What is no string may be a lock all the same (open.lua). A hold whose end the key alone knows is released as well: it
  -- ends no sooner than its record says.
  local fits = s and #s >= 37 and string.byte(s) == 0 or not s and kind == 1 and redis.pcall('EXISTS', key) == 0
  local answer
  if fits then
    -- What the server refuses to one is not refused to all: it is told the one that is sent by itself.
    fits, answer = pcall(kind == 1 and claim or release, key, s, s, numbers, from, card)
  end
  answers[place] = fits and answer or false
end
return answers
