-- Tend: the bounded clean-up that a reply's `more` left over.
--
-- returns  at, more
r.rest = 30
f.foresee({})
f.settle()
return f.finish({})
