-- The fast path of a claim: an exclusive one for a lock that nobody holds or waits for, and that remembers no done ids.
--
-- s        the record, a plain string, or nothing where there is none
-- card     the claim's; then the store's limits and the claim's numbers, in the order of acquire_head.lua
-- returns  the record as it is to be, when its key is to end, and the stamp. Nothing where it does not fit
--
-- Claims of one moment have much in common: what was packed for one, all but its card, is kept for the next,
-- of the same store, which has one retention.
local front, packed_stamp, packed_late, packed_lease
local function claim(s, card, retention, longest, mode, lease, not_after, ballot)
  if mode ~= 0 or lease > longest or not_after < now then
    return
  end
  local last, seen, ends, late, n = 0, 0, now + 1, 0, 0
  if s then
    last, seen, ends, late, n = struct.unpack('>I8I8I8I8I4', s)
  end
  if n > 0 or ends <= now then
    return
  end
  local stamp, till = last + 1, now + lease
  if us > stamp then
    stamp = us
  end
  if ballot > stamp then
    stamp = ballot
  end
  if stamp > 4503599627370495 then
    stamp = 4503599627370495
  end
  ends = till
  if not_after > ends then
    ends = not_after
  end
  if stamp > us and now + math.ceil((stamp - us) / 1000) > ends then
    ends = now + math.ceil((stamp - us) / 1000)
  end
  ends = ends + retention
  if stamp ~= packed_stamp or not_after ~= packed_late or lease ~= packed_lease then
    packed_stamp, packed_late, packed_lease = stamp, not_after, lease
    front = struct.pack('>I8I8I8I8I4BI8BBI4I8I8I8I8', stamp, now, ends, not_after, 1, 0, till, 0, 0, 0, stamp, us,
      not_after, lease)
  end
  return front .. card, ends, stamp
end
