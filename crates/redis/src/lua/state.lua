-- The record in memory: its numbers, and a cache of its fields that is written back once, at the end.
--
-- needs    key, now, opened, and the limits retention longest room sharers work
-- fields   s   last seen expires late n: always there
--          x   everything else that is one number; absent while at most one hold of a read-write lock is all there is
--          h1… holds, by slot; i<id> where an id stands (1 slot, 2 place); slot 1 has no i, everybody reads it anyway
--          r<id> the reason a hold was revoked; w<place>, l<place> waiters and their links; u the pending upgrade
--          a<inbox> until, length, entries; d<id>, m<number> done marks and their order; v the last revocation
local read, write, name = struct.unpack, struct.pack, string.format
local SMALL, LARGE = '>I8I8I8I8I4', '>I4I4I4I4I8I8I8BI8I8I8I8I8I8I4I8'
local FAR = 4503599627370496
local known, cache, changed, order = opened[1], {h1 = opened[3]}, {}, {}
local last, seen, expires, late, n = 0, now, FAR, 0, 0
local cap, permits, waiting, fairs, head, tail, place, upgrading = 0, 0, 0, 0, 0, 0, 1, 0
local lively, first, final, stale, latest, soonest, top, top_end = 0, 1, 0, 0, 0, FAR, 0, 0

if known then
  last, seen, expires, late, n = read(SMALL, known)
  if expires <= now then
    -- Its key should have gone by itself; only the stamp goes on.
    known, late, n, cache.h1 = false, 0, 0, false
  elseif opened[2] then
    cap, permits, waiting, fairs, head, tail, place, upgrading, lively, first, final, stale, latest, soonest, top,
      top_end = read(LARGE, opened[2])
  elseif n == 1 then
    soonest = read('>I8', opened[3], 25)
    top, top_end = 1, soonest
  end
end

-- Reads many fields in as few calls as possible.
local function fetch(fields)
  if not known then
    return
  end
  for from = 1, #fields, 200 do
    local to = math.min(from + 199, #fields)
    local values = redis.call('HMGET', key, unpack(fields, from, to))
    for at = from, to do
      if cache[fields[at]] == nil then
        cache[fields[at]] = values[at - from + 1]
      end
    end
  end
end

local function get(field)
  local value = cache[field]
  if value == nil then
    value = known and redis.call('HGET', key, field)
    cache[field] = value
  end
  return value
end

-- Takes false for a field that is to go.
local function set(field, value)
  if not changed[field] then
    changed[field] = true
    order[#order + 1] = field
  end
  cache[field] = value
end

local function below(a, b)
  -- Not `a < b`: Lua compares strings by the server's locale.
  for at = 1, 24 do
    local x, y = string.byte(a, at), string.byte(b, at)
    if x ~= y then
      return x < y
    end
  end
  return false
end
