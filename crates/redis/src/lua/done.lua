-- Ids that have ended but whose claim may still be on its way.
--
-- keeps    marks first to final in the order they were made, empty when first > final; latest, the last time any of
--          them counts; stale, the time that the first of them counts
local function contains(id)
  local till = first <= final and get('d' .. id)
  return till and read('>I8', till) >= now
end

local function number(at)
  return name('m%.0f', at)
end

-- A mark that would keep a shorter one from being forgotten goes behind it.
local function behind()
  local id = get(number(first))
  set(number(first), false)
  first, final = first + 1, final + 1
  set(number(final), id)
  stale = 0
end

local function mark(id, till)
  local old = first <= final and get('d' .. id)
  if till < now or old and till <= read('>I8', old) then
    return
  end
  set('d' .. id, write('>I8', till))
  latest = math.max(latest, till)
  if not old then
    final = final + 1
    set(number(final), id)
    if first == final then
      stale = till
    elseif till < stale then
      behind()
    end
  end
end

local function drop(at, id)
  set('d' .. id, false)
  set(number(at), false)
end

local function forget()
  if first > final or stale >= now then
    return
  end
  for _ = 1, work do
    if first > final then
      break
    end
    local id = get(number(first))
    stale = read('>I8', get('d' .. id))
    if stale >= now then
      break
    end
    drop(first, id)
    first = first + 1
  end
  if first > final then
    first, final, latest = 1, 0, 0
  end
end
