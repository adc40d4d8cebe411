-- Acquire, second fast path: an exclusive claim for a lock with one holder goes to the end of the line. Whatever is not
-- plain (a claim that is known, links, upgrades, marks to forget, inboxes that are dead) is left to the engine.
--
-- cost     8 redis.calls in all (TIME, MGET, HGET, HMGET, HGET, HSET, PEXPIREAT, PUBLISH): without the second HGET when
--          the head's inbox is this one, without PUBLISH when the holder knows that somebody waits; the first in line 7
--          (TIME, MGET, SETRANGE, DEL, HSET, PEXPIREAT, PUBLISH)
if s and mode == 0 and lease <= longest and not_after >= now then
  local last, seen, expires, late, n, large = struct.unpack('>I8I8I8I8I4B', s)
  local cap, permits, waiting, fairs, head, tail, place, upgrading, lively, first, final, stale, latest, soonest, top,
    top_end, from = 0, 0, 0, 0, 0, 0, 1, 0, 0, 1, 0, 0, 0, 0, 1, 0, 38
  if large == 1 then
    cap, permits, waiting, fairs, head, tail, place, upgrading, lively, first, final, stale, latest, soonest, top,
      top_end, from = struct.unpack('>I4I4I4I4I8I8I8BI8I8I8I8I8I8I4I8', s, 38)
  end
  local count, of, window, alive, fair, try, rest = struct.unpack('>I4I4I8I8BB', ARGV[1], 54)
  if n == 1 and cap == 0 and of == 0 and upgrading == 0 and expires > now and seen <= now and top == 1 and try == 0
    and alive > 0 and waiting < struct.unpack('>I4', ARGV[1]) and (waiting == 0 or tail == place - 1)
    and (first > final or stale >= now) then
    local till, _, held, _, _, _, _, length = struct.unpack('>I8BBI4I8I8I8I8', s, from)
    if large == 0 then
      soonest, top_end = till, till
    end
    local card, id, box = string.sub(s, from + 46), string.sub(ARGV[2], 1, 24), string.sub(ARGV[2], 25, 40)
    local found = held == 0 and till > now and soonest > now and string.sub(card, 1, 24) ~= id
      and (plain and {} or redis.call('HMGET', key, 'i' .. id, 'd' .. id, 'a' .. box, string.format('w%d', head)))
    if found and not found[1] and not found[2] then
      local life, front = found[3], waiting > 0 and string.sub(found[4], 71, 86)
      local front_life = life
      if front and front ~= box then
        front_life = redis.call('HGET', key, 'a' .. front)
      end
      if not front or front_life and (struct.unpack('>I8', front_life)) > now then
        local ends, span, entries = now + alive, alive, 1
        if life then
          local was, had, others = struct.unpack('>I8I8I4', life)
          entries = others + 1
          if was >= ends then
            ends, span = was, had
          end
        end
        lively, late = math.max(lively, ends), math.max(late, not_after)
        expires = math.max(now, late, latest, top_end, lively)
        if last > us then
          expires = math.max(expires, now + math.ceil((last - us) / 1000))
        end
        expires = expires + retention
        local news = (waiting == 0 or (fair == 1 and fairs == 0)) and (fairs + fair > 0 and 'W1' or 'W0')
        local there = string.format('%d', place)
        if plain then
          -- Writes nothing, but is refused without memory, before anything has gone.
          redis.call('SETRANGE', key, '0', '')
          redis.call('DEL', key)
        end
        redis.call('HSET', key, 's', struct.pack('>I8I8I8I8I4BI4I4I4I4I8I8I8BI8I8I8I8I8I8I4I8c0', last, now, expires,
            late, 1, 1, 0, permits, waiting + 1, fairs + fair, waiting > 0 and head or place, place, place + 1, 0,
            lively, first, final, stale, latest, soonest, 1, top_end, string.sub(s, from)),
          'w' .. there, struct.pack('>BI4BI8I8I8I8I8c0', 0, count, fair, lease, window, not_after, ballot, us, ARGV[2]),
          'i' .. id, struct.pack('>BI8', 2, place), 'a' .. box, struct.pack('>I8I8I4', ends, span, entries))
        redis.call('PEXPIREAT', key, string.format('%d', expires))
        if news then
          redis.pcall('PUBLISH', string.sub(ARGV[1], rest) .. string.sub(card, 25, 40), news .. key)
        end
        return {now, 0, 2, last, waiting, math.min(till - now, length), string.sub(card, 25)}
      end
    end
  end
end
