-- Release, second fast path: the only hold, with a line behind it. The first in line, who wants it alone, holds it now.
-- Whatever is not plain (a claim that follows, links, upgrades, marks to forget, inboxes that are dead) is left to the
-- engine.
--
-- cost     9 redis.calls in all (TIME, MGET, HGET, HMGET twice, PEXPIREAT, HSET, HDEL, PUBLISH), however many wait; 8
--          for the last in line (SET in place of HSET and HDEL); a PUBLISH more on a connection with an echo
if named == 0 and again == 0 and s and string.byte(s, 37) == 1 and string.sub(s, 185, 208) == ARGV[2] then
  local last, seen, expires, late, n, _, cap, permits, waiting, fairs, head, tail, place, upgrading, lively, first,
    final, stale, latest = struct.unpack('>I8I8I8I8I4BI4I4I4I4I8I8I8BI8I8I8I8I8', s)
  local till, revoked = struct.unpack('>I8B', s, 139)
  if n == 1 and cap == 0 and waiting > 0 and upgrading == 0 and expires > now and seen <= now and till > now
    and revoked == 0 and (first > final or stale >= now) then
    local there = string.format('w%d', head)
    local found = redis.call('HMGET', key, there, string.format('l%d', head), string.format('w%d', head + 1))
    local w, linked, following = found[1], found[2], found[3]
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
      local lives = redis.call('HMGET', key, 'a' .. box, 'a' .. next_box)
      local ends, span, entries = 0, 0, 0
      if lives[1] and lives[2] then
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
        if waiting == 0 then
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
          if entries > 0 then
            redis.call('HSET', key, 's', record, 'a' .. box, struct.pack('>I8I8I4', ends, span, entries))
            redis.call('HDEL', key, there, 'i' .. string.sub(w, 47, 70))
          else
            redis.call('HSET', key, 's', record)
            redis.call('HDEL', key, there, 'i' .. string.sub(w, 47, 70), 'a' .. box)
          end
        end
        -- A refused publish must not undo what is written. The echo comes first, so that it is the last to be written.
        local channels = string.sub(ARGV[1], 55)
        if string.byte(ARGV[1], 39) ~= 0 then
          redis.pcall('PUBLISH', channels .. string.sub(ARGV[1], 39, 54), '')
        end
        local grant = struct.pack('>I8I4B', stamp, waiting, fairs > 0 and 1 or 0)
        redis.pcall('PUBLISH', channels .. box, 'G' .. string.sub(w, 63, 70) .. grant .. key)
        return now
      end
    end
  end
end
