-- Ids that have ended but whose claim may still be on its way.
--
-- keeps    marks first to final in the order they were made, empty when first > final; latest, the last time any of
--          them counts; stale, the time that the first of them counts
function f.contains(id)
  local till = r.first <= r.final and f.get('d' .. id)
  return till and read('>I8', till) >= now
end

function f.mark(id, till)
  local old = r.first <= r.final and f.get('d' .. id)
  if till < now or old and till <= read('>I8', old) then
    return
  end
  f.set('d' .. id, write('>I8', till))
  r.latest = math.max(r.latest, till)
  if old then
    return
  end
  r.final = r.final + 1
  f.set(name('m%d', r.final), id)
  if r.first == r.final then
    r.stale = till
  elseif till < r.stale then
    -- The first would keep this one from being forgotten: it goes behind.
    local front = name('m%d', r.first)
    local other = f.get(front)
    f.set(front, false)
    r.first, r.final, r.stale = r.first + 1, r.final + 1, 0
    f.set(name('m%d', r.final), other)
  end
end

function f.forget()
  for _ = 1, r.work do
    if r.first > r.final then
      break
    end
    local front = name('m%d', r.first)
    local id = f.get(front)
    r.stale = read('>I8', f.get('d' .. id))
    if r.stale >= now then
      break
    end
    f.set('d' .. id, false)
    f.set(front, false)
    r.first = r.first + 1
  end
  if r.first > r.final then
    r.first, r.final, r.latest = 1, 0, 0
  end
end
