-- Writes back what changed, lets the key live as long as the record matters, and pushes the news last.
-- cost     PEXPIREAT and SET for numbers alone, else PEXPIREAT, at most one HDEL and one HSET per 500 fields, with DEL
--          (and SETRANGE for a new claim) where it was numbers alone; one PUBLISH per piece of news, and one for
--          the echo

-- Tells every holder's inbox, each once, that somebody waits.
function f.notify()
  f.all()
  local told = {}
  for slot = 1, r.n do
    local box = string.sub(f.hold(slot).card, 25, 40)
    if not told[box] then
      told[box] = true
      news[#news + 1] = box
      news[#news + 1] = r.fairs > 0 and 'W1' or 'W0'
    end
  end
end

function f.send(command, list)
  for from = 1, #list, 1000 do
    redis.call(command, key, unpack(list, from, math.min(from + 999, #list)))
  end
end

-- Every number of the record, and the hold in slot 1; and whether that is all there is.
function f.summary(waits, ends)
  -- Without these, one number tells all.
  local large = r.n > 1 or waits or r.first <= r.final or (r.n == 1 and r.cap > 0)
  large = r.audit > 0 and 2 or large and 1 or 0
  local summary = write(SMALL, r.last, now, ends, r.late, r.n, large)
  if large > 0 then
    summary = summary .. write(LARGE, r.cap, r.permits, r.waiting, r.fairs, r.head, r.tail, r.place, r.upgrading,
      r.lively, r.first, r.final, r.stale, r.latest, r.soonest, r.top, r.top_end)
  end
  if large == 2 then
    summary = summary .. write('>I8', r.audit)
  end
  if r.n == 0 then
    return summary, large == 0
  end
  -- A hold that is revoked has a reason.
  return summary .. f.get('h1'), large == 0 and string.byte(f.get('h1'), 9) == 0
end

function f.flush(waits, ends)
  local summary, small = f.summary(waits, ends)
  ends = string.format('%d', ends)
  -- Without memory only a call that has already written may write more: all but a new claim write the end first, also
  -- where there is no key yet.
  if not r.grows then
    redis.call('PEXPIREAT', key, ends)
  end
  if small then
    redis.call('SET', key, summary, 'PXAT', ends)
    return
  end
  local kept, gone = {'s', summary}, {}
  for _, field in ipairs(order) do
    local value = cache[field]
    if value and field ~= 'h1' then
      kept[#kept + 1] = field
      kept[#kept + 1] = value
    elseif field ~= 'h1' then
      gone[#gone + 1] = field
    end
  end
  local fresh = plain or not r.known
  if plain and r.grows then
    -- Writes nothing, but is refused without memory, before anything has gone.
    redis.call('SETRANGE', key, '0', '')
  end
  if s and fresh then
    redis.call('DEL', key)
  end
  f.send('HSET', kept)
  if fresh or r.grows then
    redis.call('PEXPIREAT', key, ends)
  end
  if not fresh then
    f.send('HDEL', gone)
  end
end

-- Ends the call: the hand-off that the operation made possible, then everything is written, then told.
function f.finish(reply)
  f.settle()
  local waits = f.somebody_waits()
  if r.notice and waits then
    f.notify()
  end
  local left = r.more and f.expired()
  if left then
    r.soonest = math.min(r.soonest, left.till)
  end
  if r.n > 0 and r.top == 0 then
    f.survey()
  end
  if r.waiting == 0 then
    r.head, r.tail, r.place = 0, 0, 1
  end
  if r.n == 0 and not waits then
    r.late, r.cap = 0, 0
  end
  if r.last > 0 or r.n > 0 or waits or r.first <= r.final then
    -- Every time in the record that a later operation could still depend on, plus the retention; the audit as it is.
    local ahead = math.max(0, math.ceil((r.last - us) / 1000))
    local ends = math.max(now + ahead, r.late, r.latest, r.top_end, r.lively)
    f.flush(waits, math.max(ends + r.retention, r.audit))
  elseif s then
    redis.call('DEL', key)
  end
  -- A refused publish must not undo what is written. The echo comes first, so that it is the last to be written.
  if r.echo and news[1] then
    redis.pcall('PUBLISH', string.sub(ARGV[1], r.rest) .. r.echo, '')
  end
  for at = 1, #news, 2 do
    redis.pcall('PUBLISH', string.sub(ARGV[1], r.rest) .. news[at], news[at + 1] .. key)
  end
  return {now, r.more and 1 or 0, unpack(reply)}
end
