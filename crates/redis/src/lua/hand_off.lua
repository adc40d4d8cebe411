-- Release, second fast path: the only hold, with a line behind it. The first in line, who wants it alone, holds it now;
-- the claim that may follow goes to the end. Whatever is not plain (a claim that is known, links, upgrades, marks to
-- forget, inboxes that are dead) is left to the engine. One leaves the line for one who joins it, so there is room.
--
-- cost     9 redis.calls in all (TIME, MGET, HGET, HMGET twice, PEXPIREAT, HSET, HDEL, PUBLISH), however many wait; 10
--          with a claim that nobody stands before; 8 for the last in line (SET in place of HSET and HDEL); a PUBLISH
--          more on a connection with an echo
if named == 0 and s and string.byte(s, 37) == 1 and string.sub(s, 185, 208) == ARGV[2] then
  local last, seen, expires, late, n, _, cap, permits, waiting, fairs, head, tail, place, upgrading, lively, first,
    final, stale, latest = struct.unpack('>I8I8I8I8I4BI4I4I4I4I8I8I8BI8I8I8I8I8', s)
  local till, revoked = struct.unpack('>I8B', s, 139)
  if n == 1 and cap == 0 and waiting > 0 and upgrading == 0 and expires > now and seen <= now and till > now
    and revoked == 0 and (first > final or stale >= now) then
    local there, fits, rest = string.format('w%d', head), true, 55
    local c_lease, c_late, c_ballot, c_count, c_window, c_alive, c_fair, id, c_box
    if again == 1 then
      local mode, of, try
      mode, c_lease, c_late, c_ballot, c_count, of, c_window, c_alive, c_fair, try, rest =
        struct.unpack('>BI8I8I8I4I4I8I8BB', ARGV[1], 55)
      id, c_box = string.sub(ARGV[3], 1, 24), string.sub(ARGV[3], 25, 40)
      fits = mode == 0 and of == 0 and try == 0 and c_alive > 0 and c_lease <= longest and c_late >= now
        and id ~= ARGV[2] and (waiting == 1 or tail == place - 1)
    end
    local found = fits
      and redis.call('HMGET', key, there, string.format('l%d', head), string.format('w%d', head + 1))
    local w, linked, following = found and found[1], found and found[2], found and found[3]
    local mode, count, fair, lease, window, bound, ballot, box, length = 1
    if w then
      mode, count, fair, lease, window, bound, ballot = struct.unpack('>BI4BI8I8I8I8', w)
      box, length = string.sub(w, 71, 86), window
      if lease < window then
        length = lease
      end
    end
    if mode == 0 and length > 0 and not linked and (following or waiting == 1) then
      local next_box = following and string.sub(following, 71, 86) or box
      local lives = again == 0 and redis.call('HMGET', key, 'a' .. box, 'a' .. next_box)
        or redis.call('HMGET', key, 'a' .. box, 'a' .. next_box, 'a' .. c_box, 'i' .. id, 'd' .. id)
      local ends, span, entries = 0, 0, 0
      if lives[1] and lives[2] and not lives[4] and not lives[5] then
        ends, span, entries = struct.unpack('>I8I8I4', lives[1])
      end
      if ends > now and (struct.unpack('>I8', lives[2])) > now then
        local stamp = last + 1
        if us > stamp then
          stamp = us
        end
        if ballot > stamp then
          stamp = ballot
        end
        if stamp > 4503599627370495 then
          stamp = 4503599627370495
        end
        till, waiting, fairs, head, entries = now + length, waiting - 1, fairs - fair, head + 1, entries - 1
        local fields, ahead, news = {}, waiting, false
        local grant = struct.pack('>I8I4B', stamp, waiting, fairs > 0 and 1 or 0)
        if again == 1 then
          local c_ends, c_span, others = now + c_alive, c_alive, 0
          local was, had = 0, 0
          if c_box == box then
            was, had, others = ends, span, entries
          elseif lives[3] then
            was, had, others = struct.unpack('>I8I8I4', lives[3])
          end
          if others > 0 and was >= c_ends then
            c_ends, c_span = was, had
          end
          if waiting == 0 then
            head, lively = place, 0
          end
          news = (waiting == 0 or (c_fair == 1 and fairs == 0)) and (fairs + c_fair > 0 and 'W1' or 'W0')
          fields = {'w' .. string.format('%d', place),
            struct.pack('>BI4BI8I8I8I8I8c0', 0, c_count, c_fair, c_lease, c_window, c_late, c_ballot, us, ARGV[3]),
            'i' .. id, struct.pack('>BI8', 2, place), 'a' .. c_box, struct.pack('>I8I8I4', c_ends, c_span, others + 1)}
          tail, place, waiting, fairs = place, place + 1, waiting + 1, fairs + c_fair
          lively, late = math.max(lively, c_ends), math.max(late, c_late)
        elseif waiting == 0 then
          head, tail, place, lively = 0, 0, 1, 0
        end
        local large = (waiting > 0 or first <= final) and 1 or 0
        expires = math.max(now, till, late, latest, lively)
        if stamp > us then
          expires = math.max(expires, now + math.ceil((stamp - us) / 1000))
        end
        expires = expires + retention
        redis.call('PEXPIREAT', key, string.format('%d', expires))
        if large == 0 then
          redis.call('SET', key, struct.pack('>I8I8I8I8I4BI8BBI4I8I8I8I8c0', stamp, now, expires, late, 1, 0,
            till, 0, 0, count, stamp, us, bound, length, string.sub(w, 47)), 'KEEPTTL')
        else
          local record = struct.pack('>I8I8I8I8I4BI4I4I4I4I8I8I8BI8I8I8I8I8I8I4I8I8BBI4I8I8I8I8c0', stamp, now, expires,
            late, 1, 1, 0, permits, waiting, fairs, head, tail, place, 0, lively, first, final, stale, latest, till, 1,
            till, till, 0, 0, count, stamp, us, bound, length, string.sub(w, 47))
          if entries > 0 and box ~= c_box then
            local life = struct.pack('>I8I8I4', ends, span, entries)
            redis.call('HSET', key, 's', record, 'a' .. box, life, unpack(fields))
          else
            redis.call('HSET', key, 's', record, unpack(fields))
          end
          if entries > 0 or box == c_box then
            redis.call('HDEL', key, there, 'i' .. string.sub(w, 47, 70))
          else
            redis.call('HDEL', key, there, 'i' .. string.sub(w, 47, 70), 'a' .. box)
          end
        end
        -- A refused publish must not undo what is written. The echo comes first, so that it is the last to be written.
        local channels = string.sub(ARGV[1], rest)
        if string.byte(ARGV[1], 39) ~= 0 then
          redis.pcall('PUBLISH', channels .. string.sub(ARGV[1], 39, 54), '')
        end
        local channel = channels .. box
        redis.pcall('PUBLISH', channel, 'G' .. string.sub(w, 63, 70) .. grant .. key)
        if news then
          redis.pcall('PUBLISH', channel, news .. key)
        end
        if again == 0 then
          return now
        end
        return {now, 0, 1, {2, stamp, ahead, length, string.sub(w, 71)}}
      end
    end
  end
end
