-- Claims and releases of many locks at once, each as far as its fast path fits: single calls cost about twice as much.
--
-- KEYS     the locks' keys, each once
-- ARGV[1]  for each, packed: 0 release or 1 claim, how many bytes its card has; then, as in the call for one lock, its
--          numbers from the format to what the fast path looks at last, and its card
-- returns  at, then for each lock its stamp (1 for a release) or 0, all packed. 0 has changed nothing and is to be sent
--          by itself; so is every one where the server refuses the call: what is refused to one is not refused to all
-- cost     TIME, MGET, MSET, and for each lock 1 redis.call (PEXPIREAT), 2 where there is no record (EXISTS)
local numbers, at = ARGV[1], 1
local records, stamps, changed, ends = redis.call('MGET', unpack(KEYS)), {}, {}, {}
for place, key in ipairs(KEYS) do
  local s = records[place]
  local kind, length, from = struct.unpack('>BI2', numbers, at)
  local behind = from + (kind == 1 and 42 or 27)
  at = behind + length
  local card = string.sub(numbers, behind, at - 1)
  -- What is no string may be a lock all the same (open.lua). A hold whose end the key alone knows is released as well: it
  -- ends no sooner than its record says.
  local fits = s and #s >= 37 and string.byte(s) == string.byte(numbers, from)
    or not s and kind == 1 and redis.call('EXISTS', key) == 0
  local record, till, stamp
  if fits and kind == 1 then
    record, till, stamp = claim(s, card, struct.unpack('>BI8I8BI8I8I8', numbers, from))
  elseif fits then
    record, till = release(s, card, struct.unpack('>BI8I8BI8B', numbers, from))
  end
  stamps[place] = record and (stamp or 1) or 0
  if record then
    changed[#changed + 1] = key
    changed[#changed + 1] = record
    ends[#ends + 1] = till
  end
end
if #changed > 0 then
  redis.call('MSET', unpack(changed))
end
local spelled, spelling
for place, till in ipairs(ends) do
  if till ~= spelled then
    spelled, spelling = till, string.format('%d', till)
  end
  -- All is written, whatever comes of this: a record without an end is given one by whoever comes next.
  redis.pcall('PEXPIREAT', changed[place * 2 - 1], spelling)
end
return struct.pack('>I8' .. string.rep('I8', #stamps), now, unpack(stamps))
