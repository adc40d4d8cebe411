-- Writes back what changed, lets the key live as long as the record matters, and pushes the news last.
-- cost     PEXPIREAT, at most one HDEL and one HSET per 500 fields, one PUBLISH per piece of news

-- Tells every holder's inbox, each once, that somebody waits.
local function notify()
  if not notice or not somebody_waits() then
    return
  end
  all()
  local told = {}
  for slot = 1, n do
    local box = inbox(hold(slot))
    if not told[box] then
      told[box] = true
      news[#news + 1] = {box, fairs > 0 and 'W1' or 'W0'}
    end
  end
end

-- Every time in the record that a later operation could still depend on, plus the retention.
local function lifetime()
  local till = math.max(now + math.ceil((last - us) / 1000), now, late, latest, top_end)
  if somebody_waits() then
    till = math.max(till, lively)
  end
  return till + retention
end

local function put()
  local simple = n <= 1 and not somebody_waits() and first > final and (n == 0 or cap == 0) and lively <= now
  set('s', write(SMALL, last, now, lifetime(), late, n))
  if not simple then
    set('x', write(LARGE, cap, permits, waiting, fairs, head, tail, place, upgrading, lively, first, final, stale, latest,
      soonest, top, top_end))
  elseif opened[2] and known then
    set('x', false)
  end
end

local function send(command, list)
  for from = 1, #list, 1000 do
    redis.call(command, key, unpack(list, from, math.min(from + 999, #list)))
  end
end

local function flush()
  local kept, gone = {}, {}
  for _, field in ipairs(order) do
    if cache[field] then
      kept[#kept + 1] = field
      kept[#kept + 1] = cache[field]
    else
      gone[#gone + 1] = field
    end
  end
  -- Without memory only a call that has already written may add a field: those that give room write the end first.
  local ends = lifetime()
  if opened[1] and not known then
    redis.call('DEL', key)
  end
  if not grows then
    redis.call('PEXPIREAT', key, ends)
  end
  send('HSET', kept)
  if known then
    send('HDEL', gone)
  end
  if grows or not known then
    redis.call('PEXPIREAT', key, ends)
  end
end

local function publish()
  for _, item in ipairs(news) do
    -- A refused publish must not undo what is written.
    redis.pcall('PUBLISH', ARGV[2] .. item[1], item[2] .. key)
  end
end

-- Ends the call: the hand-off that the operation made possible, then everything is written.
local function finish(reply)
  settle()
  notify()
  local left = expired()
  soonest = left and math.min(soonest, left.till) or soonest
  if n > 0 and top == 0 then
    survey()
  end
  if waiting == 0 then
    head, tail, place = 0, 0, 1
  end
  if n == 0 and not somebody_waits() then
    late, cap = 0, 0
  end
  if last == 0 and first > final and n == 0 and not somebody_waits() then
    if opened[1] then
      redis.call('DEL', key)
    end
  else
    put()
    flush()
  end
  publish()
  return {now, more and 1 or 0, unpack(reply)}
end
