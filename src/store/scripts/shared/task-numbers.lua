-- How many tasks have a number, and the first number that none has, or nil. Needs shared/aside.lua, and is in its table, too.
aside.holders = function(pauses, number)
  return redis.call('ZCOUNT', pauses, number, number) + redis.call('ZCOUNT', pauses, aside.resumed + number, aside.resumed + number)
end

aside.free = function(pauses)
  for number = 1, aside.most do
    if aside.holders(pauses, number) == 0 then return number end
  end
end
