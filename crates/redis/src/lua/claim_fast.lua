-- The fast path of a claim: an exclusive one for a lock that nobody holds or waits for, and that remembers no done ids.
--
-- takes    s, plain, form, card and the numbers as acquire_head.lua has them; in a bundle they are a function's arguments
-- gives    record, ends and stamp: the record as it is to be, when its key is to end; nothing where it does not fit
--
-- Claims of one moment have much in common: what was packed for one, all but its card, is kept for the next, of the same
-- store, which has one retention.
if mode == 0 and lease <= longest and not_after >= now and (not s or plain and string.byte(s) == form) then
  local last, seen, late, n, till = 0, 0, 0, 0, now + lease
  ends = now + 1
  if s then
    last, seen, ends, late, n = struct.unpack('>xI7I8I8I8I4', s)
  end
  if n == 0 and ends > now then
    stamp = last + 1
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
      front = struct.pack('>BI7I8I8I8I4BI8BBI4I8I8I8I8', form, stamp, now, ends, not_after, 1, 0, till, 0, 0, 0, stamp,
        us, not_after, lease)
    end
    record = front .. card
  end
end
