-- Who holds: slots 1 to n without gaps, so that all of them are read in one call.
--
-- keeps    soonest  not later than any lease end: nothing is looked for before it
--          top      the slot that ends last (0: to be found again), and top_end, its end
local HOLD = '>I8BBI4I8I8I8I8'

function f.hold(slot)
  local h = r.holds[slot]
  if not h then
    local raw, rest = f.get(name('h%d', slot)), 0
    h = {slot = slot}
    h.till, h.revoked, h.mode, h.count, h.stamp, h.since, h.not_after, h.length, rest = read(HOLD, raw)
    h.card = string.sub(raw, rest)
    h.id = string.sub(h.card, 1, 24)
    r.holds[slot] = h
  end
  return h
end

function f.save(h)
  local numbers = write(HOLD, h.till, h.revoked, h.mode, h.count, h.stamp, h.since, h.not_after, h.length)
  f.set(name('h%d', h.slot), numbers .. h.card)
end

-- Reads all of them in as few calls as possible.
function f.all()
  local missing = {}
  for slot = 2, r.n do
    if not r.holds[slot] then
      missing[#missing + 1] = name('h%d', slot)
    end
  end
  f.fetch(missing)
end

-- Whether a ends behind b. Not `a.id > b.id`: Lua compares strings by the server's locale.
function f.later(a, b)
  if a.till ~= b.till then
    return a.till > b.till
  end
  for at = 1, 24 do
    local x, y = string.byte(a.id, at), string.byte(b.id, at)
    if x ~= y then
      return x > y
    end
  end
  return false
end

-- Finds the first and the last end anew.
function f.survey()
  f.all()
  r.soonest, r.top, r.top_end = FAR, 0, 0
  for slot = 1, r.n do
    local h = f.hold(slot)
    r.soonest = math.min(r.soonest, h.till)
    if r.top == 0 or f.later(h, f.hold(r.top)) then
      r.top, r.top_end = slot, h.till
    end
  end
end

-- Takes note of a hold's new end.
function f.timed(h)
  r.soonest = math.min(r.soonest, h.till)
  if r.n == 1 then
    r.soonest, r.top, r.top_end = h.till, 1, h.till
  elseif r.top == h.slot then
    -- Ending earlier than before, it may be the last no more.
    r.top, r.top_end = h.till >= r.top_end and h.slot or 0, h.till
  elseif r.top ~= 0 and h.till >= r.top_end and f.later(h, f.hold(r.top)) then
    r.top, r.top_end = h.slot, h.till
  end
end

function f.insert(h)
  local slot = r.n + 1
  h.slot, r.n, r.holds[slot], r.permits = slot, slot, h, r.permits + h.count
  if slot > 1 then
    f.set('i' .. h.id, write('>BI8', 1, slot))
  end
  f.save(h)
  f.timed(h)
end

function f.remove(h)
  local slot, n = h.slot, r.n
  if h.revoked == 1 then
    f.set('r' .. h.id, false)
  end
  if slot > 1 then
    f.set('i' .. h.id, false)
  end
  if r.top == slot then
    r.top = 0
  elseif r.top == n then
    r.top = slot
  end
  if slot ~= n then
    local mover = f.hold(n)
    mover.slot, r.holds[slot] = slot, mover
    f.save(mover)
    f.set('i' .. mover.id, slot > 1 and write('>BI8', 1, slot))
  end
  r.holds[n] = nil
  f.set(name('h%d', n), false)
  h.slot, r.permits, r.n = nil, r.permits - h.count, n - 1
  if n == 1 then
    r.soonest, r.top_end = FAR, 0
  end
end

function f.remaining(h)
  return math.max(0, math.min(h.till - now, h.length))
end

function f.fits(mode, count, of)
  if mode == 0 then
    return r.n == 0
  elseif mode == 1 then
    return r.n == 0 or (f.hold(1).mode ~= 0 and r.n < r.sharers)
  end
  return r.permits + count <= of
end

-- Where an id stands: 1 and its slot, 2 and its place, or nothing.
function f.find(id)
  if r.n > 0 and f.hold(1).id == id then
    return 1, 1
  end
  local at = (r.n > 1 or r.waiting > 0) and f.get('i' .. id)
  if at then
    return read('>BI8', at)
  end
end

function f.holder(id)
  local kind, slot = f.find(id)
  return kind == 1 and f.hold(slot) or nil
end

-- Adds the holder that ends last to a reply, if anybody holds. What is shown leaves out the secret id.
function f.blocker(reply)
  if r.n > 0 and r.top == 0 then
    f.survey()
  end
  if r.n > 0 and r.top_end > now then
    local h = f.hold(r.top)
    reply[#reply + 1] = f.remaining(h)
    reply[#reply + 1] = string.sub(h.card, 25)
    return true
  end
end
