-- Who holds: slots 1 to n without gaps, so that all of them are read in one call.
--
-- keeps    soonest  not later than any lease end: nothing is looked for before it
--          top      the slot that ends last (0: to be found again), and top_end, its end
local HOLD = '>c24I8BBI4I8I8I8I8'
local holds = {}

local function hold(slot)
  local h = holds[slot]
  if not h then
    local raw, rest = get('h' .. slot), 0
    h = {slot = slot}
    h.id, h.till, h.revoked, h.mode, h.count, h.stamp, h.since, h.not_after, h.length, rest = read(HOLD, raw)
    h.static = string.sub(raw, rest)
    holds[slot] = h
  end
  return h
end

local function save(h)
  set('h' .. h.slot, write(HOLD, h.id, h.till, h.revoked, h.mode, h.count, h.stamp, h.since, h.not_after, h.length) ..
    h.static)
end

local function all()
  local missing = {}
  for slot = 1, n do
    if not holds[slot] then
      missing[#missing + 1] = 'h' .. slot
    end
  end
  fetch(missing)
end

local function later(a, b)
  return a.till > b.till or (a.till == b.till and below(b.id, a.id))
end

-- Finds the first and the last end anew.
local function survey()
  all()
  soonest, top, top_end = FAR, 0, 0
  for slot = 1, n do
    local h = hold(slot)
    soonest = math.min(soonest, h.till)
    if top == 0 or later(h, hold(top)) then
      top, top_end = slot, h.till
    end
  end
end

-- Takes note of a hold's new end.
local function timed(h)
  soonest = math.min(soonest, h.till)
  if n == 1 then
    soonest, top, top_end = h.till, 1, h.till
  elseif top ~= 0 and (h.till > top_end or h.till == top_end and (top == h.slot or later(h, hold(top)))) then
    top, top_end = h.slot, h.till
  elseif top == h.slot then
    top = 0
  end
end

local function insert(h)
  n = n + 1
  h.slot, holds[n], permits = n, h, permits + h.count
  if n > 1 then
    set('i' .. h.id, write('>BI8', 1, n))
  end
  save(h)
  timed(h)
end

local function remove(h)
  local slot, mover = h.slot, hold(n)
  if h.revoked == 1 then
    set('r' .. h.id, false)
  end
  if slot > 1 then
    set('i' .. h.id, false)
  end
  if top == slot then
    top = 0
  elseif top == n then
    top = slot
  end
  if slot ~= n then
    mover.slot, holds[slot] = slot, mover
    save(mover)
    set('i' .. mover.id, slot > 1 and write('>BI8', 1, slot))
  end
  holds[n] = nil
  set('h' .. n, n == 1 and '')
  h.slot, permits, n = nil, permits - h.count, n - 1
  if n == 0 then
    soonest, top_end = FAR, 0
  end
end

local function remaining(h)
  return math.max(0, math.min(h.till - now, h.length))
end

local function fits(mode, count, of)
  if mode == 0 then
    return n == 0
  elseif mode == 1 then
    return n == 0 or (hold(1).mode ~= 0 and n < sharers)
  end
  return permits + count <= of
end

-- Where an id stands: 1 and its slot, 2 and its place, or nothing.
local function find(id)
  if n > 0 and hold(1).id == id then
    return 1, 1
  end
  local at = (n > 1 or waiting > 0) and get('i' .. id)
  if at then
    return read('>BI8', at)
  end
end

local function holder(id)
  local kind, slot = find(id)
  return kind == 1 and hold(slot) or nil
end

-- Adds the holder that ends last to a reply, if anybody holds.
local function blocker(reply)
  if n > 0 and top == 0 then
    survey()
  end
  if n > 0 and top_end > now then
    reply[#reply + 1] = remaining(hold(top))
    reply[#reply + 1] = hold(top).static
    return true
  end
end
